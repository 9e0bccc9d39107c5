//! The model's own questions (`AskUserQuestion`).

use std::collections::BTreeMap;

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::{AskUserQuestionInput, Question};

use super::{Person, Spoken};
use crate::output::{DIM, STRONG, WARN, visible};

/// Asks them one after the other.
pub(super) fn ask(
    request: &PermissionRequest,
    input: &AskUserQuestionInput,
    person: &mut impl Person,
) -> Spoken<Decision> {
    let mut answers = BTreeMap::new();
    for question in &input.questions {
        answers.insert(question.question.clone(), answer(question, person)?);
    }
    Ok(request.answer(&answers))
}

fn answer(question: &Question, person: &mut impl Person) -> Spoken<String> {
    let several = question.multi_select == Some(true);
    person.print(&describe(question))?;
    let hint = match (question.options.is_empty(), several) {
        (true, _) => "your answer",
        (false, false) => "a number, or your own words",
        (false, true) => "numbers (1, 3), or your own words",
    };
    loop {
        let line = person.ask(&format!("{STRONG}{hint}:{STRONG:#} "))?;
        match read(&line, question, several) {
            Ok(answer) => return Ok(answer),
            Err("") => {}
            Err(why) => person.print(&format!("  {WARN}{why}{WARN:#}\n"))?,
        }
    }
}

fn describe(question: &Question) -> String {
    let header = question.header.as_deref().filter(|header| !header.is_empty());
    let header = header.map(|header| format!("{DIM}[{}]{DIM:#} ", visible(header))).unwrap_or_default();
    let mut text = format!("{header}{STRONG}{}{STRONG:#}\n", visible(&question.question));
    for (index, option) in question.options.iter().enumerate() {
        let about = option.description.as_deref().filter(|about| !about.is_empty());
        let about = about.map(|about| format!("  {DIM}{}{DIM:#}", visible(about))).unwrap_or_default();
        text.push_str(&format!("  {}  {}{about}\n", index + 1, visible(&option.label)));
        for line in option.preview.iter().flat_map(|preview| preview.lines()) {
            text.push_str(&format!("       {DIM}{}{DIM:#}\n", visible(line)));
        }
    }
    text
}

/// Numbers mean options; anything else is an answer by itself.
fn read(line: &str, question: &Question, several: bool) -> Result<String, &'static str> {
    if line.is_empty() {
        return Err("");
    }
    let parts: Vec<&str> = line.split([',', ' ']).filter(|part| !part.is_empty()).collect();
    let numbers = parts.iter().map(|part| part.parse::<usize>()).collect::<Result<Vec<_>, _>>();
    let Ok(numbers) = numbers else { return Ok(line.to_owned()) };
    if question.options.is_empty() {
        return Ok(line.to_owned());
    }
    if !several && numbers.len() > 1 {
        return Err("only one can be chosen");
    }
    let label =
        |number: &usize| question.options.get(number.checked_sub(1)?).map(|option| option.label.as_str());
    let labels = numbers.iter().map(label).collect::<Option<Vec<_>>>();
    labels.map(|labels| labels.join(", ")).ok_or("there is no such number")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::permission;
    use super::super::scripted::{self, Scripted};

    fn answered(questions: Value, lines: &[&'static str]) -> (Value, String) {
        let body = json!({"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "t",
            "input": {"questions": questions}});
        let mut person = Scripted::saying(lines.iter().copied());
        let decision = permission::ask(&scripted::request(body), &mut person).unwrap();
        let decision = serde_json::to_value(decision).unwrap();
        assert_eq!(decision["updatedInput"]["questions"], questions, "the rest of the input stays");
        (decision["updatedInput"]["answers"].clone(), person.plain())
    }

    #[test]
    fn numbers_labels_and_own_words() {
        let options = json!([{"label": "Red", "description": "warm"}, {"label": "Blue\u{1b}"}]);
        let questions = json!([
            {"question": "Which?", "header": "Colour", "options": options, "multiSelect": false},
            {"question": "Which of them?", "options": options, "multiSelect": true},
            {"question": "Why?", "options": options, "multiSelect": false},
        ]);
        let (answers, shown) = answered(questions, &["", "3", "0", "1 2", "2", "1, 2", "because 2 is more"]);
        assert_eq!(
            answers,
            json!({"Which?": "Blue\u{1b}", "Which of them?": "Red, Blue\u{1b}", "Why?": "because 2 is more"})
        );
        assert!(shown.contains("[Colour] Which?\n  1  Red  warm\n  2  Blue\\u{1b}\n"), "{shown}");
        assert_eq!(shown.matches("no such number").count(), 2, "{shown}");
        assert_eq!(shown.matches("only one").count(), 1, "{shown}");
    }

    #[test]
    fn a_question_without_options_takes_any_line() {
        let (answers, _) = answered(json!([{"question": "How many?", "options": []}]), &["3"]);
        assert_eq!(answers, json!({"How many?": "3"}));
    }
}
