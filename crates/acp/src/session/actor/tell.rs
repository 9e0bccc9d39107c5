//! What the client is told.

use super::*;

impl Actor {
    pub(super) fn update(&self, update: &SessionUpdate) {
        self.context().update(&self.asker.session_id, update);
    }

    pub(super) fn flush(&mut self) {
        for update in self.screen.take() {
            self.context().update(&self.asker.session_id, &update);
        }
    }

    pub(super) fn answer(&mut self, answers: Answers) {
        for (uuid, answer) in answers {
            // What is answered is not sent again, whatever becomes of the CLI.
            self.unread.retain(|user| user.uuid.as_ref() != Some(&uuid));
            let Some(responder) = self.responders.remove(&uuid) else { continue };
            match answer {
                Answer::Stopped(mut response) => {
                    // The prompt's name, for whoever wants to go back to it or to fork at it.
                    let about = json!({ "userMessageId": uuid });
                    response.meta.get_or_insert_default().insert("claudeCode".into(), about);
                    responder.reply(&response);
                }
                Answer::Failed(error) => responder.error(&error),
            }
            if let Some(on_rest) = &self.context().settings.on_rest {
                on_rest();
            }
        }
    }

    pub(super) fn tell_mode(&self) {
        let current_mode_id = self.choices.modes().current_mode_id;
        self.update(&SessionUpdate::CurrentModeUpdate(CurrentMode { current_mode_id }));
        self.tell_choices();
    }

    pub(super) fn tell_choices(&self) {
        let config_options = self.choices.options(&self.context().client);
        self.update(&SessionUpdate::ConfigOptionUpdate(ConfigOptions { config_options }));
    }

    pub(super) fn set_title(&mut self, title: String) {
        self.title_told &= self.title.as_deref() == Some(&title);
        self.title = Some(title);
    }

    pub(super) fn tell_info(&mut self) {
        let updated_at = Some(format!("{:.3}", jiff::Timestamp::now()));
        let title = self.title.clone().filter(|_| !self.title_told);
        self.title_told |= title.is_some();
        let info = SessionInfoUpdate { title, updated_at, meta: None };
        self.update(&SessionUpdate::SessionInfoUpdate(info));
    }
}
