//! Whatever happens, and in whatever order: every `openDiff` is answered exactly once, and `FILE_SAVED` answers only
//! the very diff that somebody accepted.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::collections::HashMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::support::{Act, Client, Rig, Shown, diff, is_tool_error};
use oarlock_ide::editor::DiffOutcome;

/// Something that one of two clients, the person or a command does.
#[derive(Debug, Clone, Copy)]
enum Step {
    Open {
        client: usize,
        tab: usize,
    },
    CloseTab {
        client: usize,
        tab: usize,
    },
    CloseAll {
        client: usize,
    },
    /// Cancels one of the client's requests.
    Cancel {
        client: usize,
        which: usize,
    },
    /// The person acts on one of the views, perhaps one that is decided already.
    View {
        which: usize,
        deed: Deed,
    },
    /// A command decides one of the diffs that wait.
    Command {
        which: usize,
        accept: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Accept,
    Edit,
    Reject,
    Close,
    Fail,
    Panic,
}

fn step() -> impl Strategy<Value = Step> {
    let deed = prop_oneof![
        3 => Just(Deed::Accept),
        1 => Just(Deed::Edit),
        1 => Just(Deed::Reject),
        1 => Just(Deed::Close),
        1 => Just(Deed::Fail),
        1 => Just(Deed::Panic),
    ];
    prop_oneof![
        6 => (0..2_usize, 0..3_usize).prop_map(|(client, tab)| Step::Open { client, tab }),
        2 => (0..2_usize, 0..3_usize).prop_map(|(client, tab)| Step::CloseTab { client, tab }),
        1 => (0..2_usize).prop_map(|client| Step::CloseAll { client }),
        1 => (0..2_usize, 0..8_usize).prop_map(|(client, which)| Step::Cancel { client, which }),
        4 => (0..8_usize, deed).prop_map(|(which, deed)| Step::View { which, deed }),
        2 => (0..4_usize, any::<bool>()).prop_map(|(which, accept)| Step::Command { which, accept }),
    ]
}

/// What is known of one `openDiff`, by its proposed contents, which are unlike any other's.
struct Opened {
    client: usize,
    id: Value,
    /// The contents of every accept that anybody tried on this very diff.
    accepted_as: Vec<String>,
}

struct World {
    rig: Rig,
    clients: [Client; 2],
    opened: HashMap<String, Opened>,
    views: Vec<Shown>,
    serial: usize,
}

impl World {
    async fn new() -> Self {
        let rig = Rig::start().await;
        let clients = [rig.cli_with_pid(1).await, rig.cli_with_pid(2).await];
        Self { rig, clients, opened: HashMap::new(), views: Vec::new(), serial: 0 }
    }

    async fn take(&mut self, step: Step) {
        match step {
            Step::Open { client, tab } => {
                self.serial += 1;
                let contents = format!("proposal {}\n", self.serial);
                let path = self.rig.home.workspace.join("a.py");
                let arguments = diff(&path, &contents, &format!("tab {tab}"));
                let id = self.clients[client].ask_tool("openDiff", arguments).await;
                self.views.push(self.rig.editor.shown().await);
                self.opened.insert(contents, Opened { client, id, accepted_as: Vec::new() });
            }
            Step::CloseTab { client, tab } => {
                self.clients[client].ask_tool("close_tab", json!({ "tab_name": format!("tab {tab}") })).await;
            }
            Step::CloseAll { client } => {
                drop(self.clients[client].ask_tool("closeAllDiffTabs", json!({})).await)
            }
            Step::Cancel { client, which } => {
                let id = self.opened.values().filter(|opened| opened.client == client).nth(which);
                let id = id.map_or(json!(4711), |opened| opened.id.clone());
                self.clients[client].notify("notifications/cancelled", json!({ "requestId": id })).await;
            }
            Step::View { which, deed } if !self.views.is_empty() => {
                let view = self.views.swap_remove(which % self.views.len());
                self.act(view, deed);
            }
            Step::Command { which, accept } => {
                let ide = self.rig.server.ide();
                let waiting = ide.diffs();
                if waiting.is_empty() {
                    return;
                }
                let number = &waiting[which % waiting.len()].diff;
                let decided = if accept { ide.accept(number, None) } else { ide.reject(number) };
                // On several threads it may have been decided since the list was made.
                if accept && decided.is_ok() {
                    // The number grows by one for each diff, as the serial number in the contents does.
                    let proposed = format!("proposal {number}\n");
                    self.opened.get_mut(&proposed).unwrap().accepted_as.push(proposed.clone());
                }
            }
            Step::View { .. } => {}
        }
    }

    fn act(&mut self, view: Shown, deed: Deed) {
        let proposed = view.request.new_contents.to_string();
        let opened = self.opened.get_mut(&proposed).unwrap();
        match deed {
            Deed::Accept => {
                opened.accepted_as.push(proposed);
                view.accept();
            }
            Deed::Edit => {
                let edited = format!("edited {proposed}");
                opened.accepted_as.push(edited.clone());
                view.accept_as(&edited);
            }
            Deed::Reject => view.reject(),
            Deed::Close => view.act(Act::Decide(DiffOutcome::Closed)),
            Deed::Fail => view.act(Act::Fail("lost")),
            Deed::Panic => view.act(Act::Panic),
        }
    }

    /// Closes what is left and holds the account.
    async fn check(mut self) {
        for client in &mut self.clients {
            client.call("closeAllDiffTabs", json!({})).await;
        }
        for (proposed, opened) in &self.opened {
            let answer = self.clients[opened.client].answer(&opened.id).await;
            if is_tool_error(&answer).is_some() {
                continue;
            }
            let texts: Vec<&str> = crate::support::texts(&answer);
            match texts.as_slice() {
                ["DIFF_REJECTED"] => {}
                ["FILE_SAVED", contents] => {
                    let accepted = opened.accepted_as.iter().any(|accepted| accepted == contents);
                    assert!(accepted, "{proposed:?} was saved as {contents:?} and nobody accepted that");
                }
                other => panic!("{proposed:?} was answered with {other:?}"),
            }
        }
        assert!(self.rig.server.ide().diffs().is_empty());
        for client in &mut self.clients {
            client.settle_accounts().await;
        }
        assert!(!self.rig.home.workspace.join("a.py").exists(), "the engine wrote a file");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, max_shrink_iters: 200, ..ProptestConfig::default() })]

    #[test]
    fn ide_diff_13_only_an_explicit_accept_of_that_very_diff_saves_it(
        steps in proptest::collection::vec(step(), 1..40),
        workers in 1..3_usize,
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(workers).enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.take(step).await;
            }
            world.check().await;
        });
    }

    #[test]
    fn ide_diff_10_a_client_that_vanishes_saves_nothing_and_leaves_the_other_alone(
        steps in proptest::collection::vec(step(), 1..20),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let mut world = World::new().await;
            for step in steps {
                world.take(step).await;
            }
            let World { rig, clients: [mut one, two], opened, views, .. } = world;
            two.socket.cut();
            rig.events.wait("client_gone", 1).await;
            assert!(rig.server.ide().diffs().iter().all(|diff| diff.client == 1));
            views.into_iter().for_each(Shown::accept);
            for opened in opened.values().filter(|opened| opened.client == 0) {
                one.answer(&opened.id).await;
            }
            one.settle_accounts().await;
        });
    }
}
