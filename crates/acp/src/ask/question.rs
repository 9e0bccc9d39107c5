//! The model asks the user (`AskUserQuestion`): by a form where the client shows forms, else one question after the other.
//!
//! A user who answers nothing has declined: the model is told so and goes on.

use std::collections::{BTreeMap, BTreeSet};

use oarlock_agent::permission::{Decision, PermissionRequest};
use oarlock_agent::stream::{Question, QuestionOption};
use oarlock_proto::acp::PermissionOptionKind::{AllowOnce, RejectOnce};
use oarlock_proto::acp::{CreateElicitation, ElicitationMode, ElicitationResponse, ToolCall};
use serde_json::{Map, Value, json};

use super::menu::{self, Choice, Offer};
use super::settle;
use crate::context::Asker;

/// What the model reads when the user answers nothing.
const DECLINED: &str = "The user chose not to answer. Go on by your own judgement, or ask in other words.";
/// Where a client finds an answer's preview: the protocol has no place for it.
const PREVIEW: &str = "_claude/askUserQuestionOption";

/// What the user has said.
#[derive(Debug, Default, PartialEq)]
struct Answers {
    /// By the question's text.
    answers: BTreeMap<String, String>,
    /// Notes to an answer that was picked, by the question's text.
    notes: BTreeMap<String, String>,
}

/// Asks the model's questions.
pub(super) async fn ask(asker: &Asker, request: &PermissionRequest, tool_call: ToolCall) -> Decision {
    let mut questions = request.questions().map(|input| input.questions).unwrap_or_default();
    questions.retain(|question| !question.question.is_empty() && !question.options.is_empty());
    if questions.is_empty() {
        return request
            .deny("There is no question with answers in this call. Ask again, or ask in plain words.");
    }
    let answers = if asker.client().shows_forms() {
        by_form(asker, request, &questions).await
    } else {
        by_menus(asker, &questions, &tool_call).await
    };
    match answers {
        Choice::Made(answers) if answers.answers.is_empty() => request.deny(DECLINED),
        Choice::Made(answers) => request.allow_with(answered(request, answers)),
        Choice::Cancelled => settle(request, Choice::Cancelled),
        Choice::Failed(why) => settle(request, Choice::Failed(why)),
    }
}

/// The tool's input with what the user has said.
fn answered(request: &PermissionRequest, answers: Answers) -> Value {
    let mut input = request.input.value();
    if let Value::Object(fields) = &mut input {
        fields.insert("answers".into(), json!(answers.answers));
        if !answers.notes.is_empty() {
            let notes =
                answers.notes.into_iter().map(|(question, notes)| (question, json!({ "notes": notes })));
            fields.insert("annotations".into(), notes.collect::<Map<_, _>>().into());
        }
    }
    input
}

// ---- forms

async fn by_form(asker: &Asker, request: &PermissionRequest, questions: &[Question]) -> Choice<Answers> {
    let message = match questions {
        [question] => question.question.clone(),
        _ => "Please answer these questions.".to_owned(),
    };
    let form = CreateElicitation {
        session_id: asker.session_id.to_string(),
        tool_call_id: Some(request.tool_use_id.clone()),
        message,
        mode: ElicitationMode::Form { requested_schema: schema(questions).into() },
    };
    match asker.ask("elicitation/create", &form).await {
        Ok(ElicitationResponse::Accept { content }) => {
            Choice::Made(read(questions, &content.unwrap_or_default()))
        }
        Ok(ElicitationResponse::Decline) => Choice::Made(Answers::default()),
        Ok(ElicitationResponse::Cancel) => Choice::Cancelled,
        Ok(_) => Choice::Failed("the client gave an answer of a kind that is not known".into()),
        Err(error) => menu::unanswered(&error),
    }
}

fn field(index: usize) -> String {
    format!("question_{index}")
}

fn own_words(index: usize) -> String {
    format!("question_{index}_custom")
}

fn is_multiple(question: &Question) -> bool {
    question.multi_select == Some(true)
}

/// A form: for each question a choice, and a line for own words. Nothing is required.
fn schema(questions: &[Question]) -> Value {
    let mut properties = Map::new();
    for (index, question) in questions.iter().enumerate() {
        let options: Vec<Value> = question.options.iter().map(choice).collect();
        let mut choice = if is_multiple(question) {
            json!({ "type": "array", "items": { "anyOf": options } })
        } else {
            json!({ "type": "string", "oneOf": options })
        };
        if let Some(header) = question.header.as_ref().filter(|header| !header.is_empty()) {
            choice["title"] = json!(header);
        }
        // A single question is the form's message.
        if questions.len() > 1 {
            choice["description"] = json!(question.question);
        }
        let description = if is_multiple(question) {
            "In your own words, besides what you have chosen above."
        } else {
            "In your own words; or a note to what you have chosen above."
        };
        properties.insert(field(index), choice);
        properties.insert(
            own_words(index),
            json!({ "type": "string", "title": "Other", "description": description }),
        );
    }
    json!({ "type": "object", "properties": properties })
}

fn choice(option: &QuestionOption) -> Value {
    let mut choice = json!({ "const": option.label, "title": option.label });
    if let Some(description) = option.description.as_ref().filter(|text| !text.is_empty()) {
        choice["description"] = json!(description);
    }
    if let Some(preview) = &option.preview {
        choice["_meta"] = json!({ PREVIEW: { "preview": preview } });
    }
    choice
}

/// What a filled-in form says.
fn read(questions: &[Question], content: &BTreeMap<String, Value>) -> Answers {
    let mut answers = Answers::default();
    for (index, question) in questions.iter().enumerate() {
        let mut picked = content.get(&field(index)).map(texts).unwrap_or_default();
        let own = content.get(&own_words(index)).map(texts).unwrap_or_default();
        let text = question.question.clone();
        if is_multiple(question) {
            picked.extend(own);
            if !picked.is_empty() {
                answers.answers.insert(text, join(&picked));
            }
        } else if picked.is_empty() {
            if !own.is_empty() {
                answers.answers.insert(text, own.join(", "));
            }
        } else {
            answers.answers.insert(text.clone(), picked.join(", "));
            if !own.is_empty() {
                answers.notes.insert(text, own.join(", "));
            }
        }
    }
    answers
}

/// The texts in a field's value.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) if text.trim().is_empty() => vec![],
        Value::String(text) => vec![text.trim().to_owned()],
        Value::Array(items) => items.iter().flat_map(texts).collect(),
        Value::Bool(_) | Value::Number(_) => vec![value.to_string()],
        Value::Null | Value::Object(_) => vec![],
    }
}

/// Several answers to one question, as the CLI has them: those that hold the separator are quoted.
fn join(picked: &[String]) -> String {
    let quoted = picked.iter().map(|item| {
        if item.contains(", ") || item.contains('"') {
            Value::from(item.as_str()).to_string()
        } else {
            item.clone()
        }
    });
    quoted.collect::<Vec<_>>().join(", ")
}

// ---- one question after the other

/// What the user picks.
#[derive(Debug, Clone)]
enum Pick {
    Option(usize),
    Done,
    Skip,
}

async fn by_menus(asker: &Asker, questions: &[Question], tool_call: &ToolCall) -> Choice<Answers> {
    let mut answers = Answers::default();
    for question in questions {
        match by_menu(asker, question, tool_call).await {
            Choice::Made(Some(answer)) => drop(answers.answers.insert(question.question.clone(), answer)),
            Choice::Made(None) => {}
            Choice::Cancelled => return Choice::Cancelled,
            Choice::Failed(why) => return Choice::Failed(why),
        }
    }
    Choice::Made(answers)
}

/// Asks one question: again and again when several answers may be picked, until the user is done.
async fn by_menu(asker: &Asker, question: &Question, tool_call: &ToolCall) -> Choice<Option<String>> {
    let mut picked = BTreeSet::new();
    loop {
        let chosen: Vec<String> =
            picked.iter().map(|index: &usize| question.options[*index].label.clone()).collect();
        if picked.len() == question.options.len() {
            return Choice::Made(Some(join(&chosen)));
        }
        let title = match &question.header {
            Some(header) if !header.is_empty() => format!("{header}: {}", question.question),
            _ => question.question.clone(),
        };
        let tool_call = ToolCall { title: Some(title), ..tool_call.clone() };
        match menu::ask(asker, tool_call, picks(question, &picked, &chosen)).await {
            Choice::Made(Pick::Option(index)) if is_multiple(question) => drop(picked.insert(index)),
            Choice::Made(Pick::Option(index)) => {
                return Choice::Made(Some(question.options[index].label.clone()));
            }
            Choice::Made(Pick::Done) => return Choice::Made(Some(join(&chosen))),
            Choice::Made(Pick::Skip) => return Choice::Made(None),
            Choice::Cancelled => return Choice::Cancelled,
            Choice::Failed(why) => return Choice::Failed(why),
        }
    }
}

fn picks(question: &Question, picked: &BTreeSet<usize>, chosen: &[String]) -> Vec<Offer<Pick>> {
    let mut offers = Vec::new();
    if !picked.is_empty() {
        offers.push(Offer::new(AllowOnce, "done", format!("Done: {}", chosen.join(", ")), Pick::Done));
    }
    for (index, option) in question.options.iter().enumerate() {
        if picked.contains(&index) {
            continue;
        }
        let name = match &option.description {
            Some(description) if !description.is_empty() => format!("{} ({description})", option.label),
            _ => option.label.clone(),
        };
        let name = if picked.is_empty() { name } else { format!("Also {name}") };
        offers.push(Offer::new(AllowOnce, format!("option-{index}"), name, Pick::Option(index)));
    }
    offers.push(Offer::new(RejectOnce, "skip", "Skip", Pick::Skip));
    offers
}
