//! At a terminal.

use oarlock_testkit::tui::{Key, Tui};

use crate::stage::{PATIENCE, Stage};

const ALLOW: &str = "allow it?";

/// Waits until a question is the last thing on the screen: what is typed before it counts for nothing.
async fn asked(tui: &Tui, question: &str) -> String {
    let is_asked = |screen: &str| {
        let last = screen.lines().rev().map(str::trim).find(|line| !line.is_empty());
        last.is_some_and(|line| line.starts_with(question) && line.ends_with(':'))
    };
    tui.wait_until(&format!("the question {question:?}"), PATIENCE, is_asked).await.unwrap()
}

fn answer(tui: &Tui, line: &str) {
    tui.type_text(line).unwrap();
    tui.press(Key::Enter).unwrap();
}

async fn ended(tui: &Tui, code: i32) -> String {
    tui.wait_for_text(&format!("ended with {code}"), PATIENCE).await.unwrap()
}

fn writes() -> Stage {
    Stage::turn(
        r#"{ text = "I will **write** it." }, { tool = "Write", input = { file_path = "a.txt", content = "alpha" }, output = "wrote ${input.content}" }, { text = "Well." }"#,
    )
}

fn runs() -> Stage {
    Stage::turn(
        r#"{ tool = "Bash", input = { command = "mkdir x" }, output = "ran: ${input.command}" }, { tool = "Bash", input = { command = "mkdir x" }, output = "ran again" }, { text = "Well." }"#,
    )
}

#[tokio::test]
async fn a_change_is_shown_and_made_after_a_yes() {
    let stage = writes();
    let tui = stage.open("write");
    let shown = asked(&tui, ALLOW).await;
    assert!(shown.contains("I will write it."), "all text before the question, and styled: {shown}");
    assert!(shown.contains("wants to create a.txt") && shown.contains("+ alpha"), "{shown}");
    // A stray Enter decides nothing.
    answer(&tui, "");
    tui.wait_until("the question again", PATIENCE, |screen| screen.matches(ALLOW).count() == 2)
        .await
        .unwrap();
    asked(&tui, ALLOW).await;
    answer(&tui, "y");
    let shown = ended(&tui, 0).await;
    assert!(shown.contains("└ done") && shown.contains("Well."), "{shown}");
    assert!(shown.contains("2 turns") && shown.contains("$0.") && shown.contains("session "), "{shown}");
}

#[tokio::test]
async fn a_no_reaches_the_model_with_its_reason() {
    let stage =
        Stage::turn(r#"{ tool = "Bash", input = { command = "mkdir x" } }, { text = "It was: ${result}" }"#);
    let tui = stage.open("go");
    asked(&tui, ALLOW).await;
    answer(&tui, "n use another name");
    let shown = ended(&tui, 0).await;
    assert!(shown.contains("└ refused"), "{shown}");
}

#[tokio::test]
async fn always_says_which_rule_and_asks_no_more() {
    let stage = runs();
    let tui = stage.open("go");
    let shown = asked(&tui, ALLOW).await;
    assert!(
        shown.contains("a(lways): allow Bash(mkdir x") && shown.contains("settings.local.json"),
        "{shown}"
    );
    answer(&tui, "a");
    let shown = ended(&tui, 0).await;
    assert_eq!(shown.matches(ALLOW).count(), 1, "{shown}");
    assert!(shown.contains("ran again"), "{shown}");
}

#[tokio::test]
async fn an_edited_command_runs_as_it_was_edited() {
    let stage = runs();
    let tui = stage.open_with("go", "sed -i s/mkdir/rmdir/ \"$1\"");
    asked(&tui, ALLOW).await;
    answer(&tui, "e");
    tui.wait_for_text("    rmdir x", PATIENCE).await.unwrap();
    asked(&tui, ALLOW).await;
    answer(&tui, "y");
    tui.wait_for_text("ran: rmdir x", PATIENCE).await.unwrap();
    asked(&tui, ALLOW).await;
    answer(&tui, "q");
    let shown = ended(&tui, 4).await;
    assert!(!shown.contains("Well."), "q ends the turn: {shown}");
}

#[tokio::test]
async fn what_was_typed_before_the_question_is_no_answer() {
    let stage = Stage::turn(
        r#"{ text = "Wait for it.\n" }, { after_ms = 1500 }, { tool = "Bash", input = { command = "mkdir x" }, output = "ran" }, { text = "Well." }"#,
    );
    let tui = stage.open("go");
    tui.wait_for_text("Wait for it.", PATIENCE).await.unwrap();
    answer(&tui, "y");
    let shown = asked(&tui, ALLOW).await;
    assert!(!shown.contains("└ ran"), "{shown}");
    answer(&tui, "n");
    ended(&tui, 0).await;
}

#[tokio::test]
async fn several_questions_wait_for_each_other() {
    let stage = Stage::turn(
        r#"{ tools = [
            { tool = "Bash", input = { command = "mkdir one" }, output = "first" },
            { tool = "Bash", input = { command = "mkdir two" }, output = "second" },
        ], parallel = true }, { text = "Well." }"#
            .replace('\n', " ")
            .as_str(),
    );
    let tui = stage.open("go");
    let shown = asked(&tui, ALLOW).await;
    assert_eq!(shown.matches(ALLOW).count(), 1, "{shown}");
    answer(&tui, "y");
    tui.wait_until("the second question", PATIENCE, |screen| screen.matches(ALLOW).count() == 2)
        .await
        .unwrap();
    asked(&tui, ALLOW).await;
    answer(&tui, "n");
    let shown = ended(&tui, 0).await;
    assert!(shown.contains("first") && shown.contains("refused") && !shown.contains("second"), "{shown}");
}

#[tokio::test]
async fn a_withdrawn_question_goes_away() {
    let stage = Stage::turn(
        r#"{ request = { subtype = "can_use_tool", tool_name = "Bash", input = { command = "mkdir x" }, tool_use_id = "t9" }, cancel_after_ms = 3000 }, { text = "Never mind." }"#,
    );
    let tui = stage.open("go");
    asked(&tui, ALLOW).await;
    let shown = ended(&tui, 0).await;
    assert!(shown.contains("(no longer asked)") && shown.contains("Never mind."), "{shown}");
}

#[tokio::test]
async fn the_models_questions_plans_and_forms_are_answered() {
    let script = r#"
[[turn]]
steps = [
  { tool = "AskUserQuestion", input = { questions = [
    { question = "Which colour?", header = "Colour", multiSelect = false, options = [{ label = "Blue" }, { label = "Red" }] },
  ] }, output = "chosen: ${input.answers}" },
  { tool = "mcp__srv__ask", ask = false, elicit = { message = "Your name?",
    schema = { type = "object", properties = { name = { type = "string" } }, required = ["name"] } },
    output = "elicited: ${answer.action} ${answer.content.name}" },
  { tool = "ExitPlanMode", input = { plan = "1. Do **it**." } },
  { text = "The mode is ${mode}." },
]
"#;
    let stage = Stage::new(script);
    let tui = stage.open("--permission-mode plan go");
    asked(&tui, "a number, or your own words").await;
    answer(&tui, "2");
    asked(&tui, "answer?").await;
    answer(&tui, "y");
    asked(&tui, "name").await;
    answer(&tui, "Ann");
    let shown = asked(&tui, "begin?").await;
    assert!(shown.contains("elicited: accept Ann") && shown.contains("1. Do it."), "{shown}");
    answer(&tui, "a");
    let shown = ended(&tui, 0).await;
    assert!(shown.contains("The mode is acceptEdits."), "{shown}");
}

#[tokio::test]
async fn ctrl_c_interrupts_and_says_so() {
    let stage = Stage::turn(r#"{ text = "Part one" }, { wait = "interrupt" }, { text = "Never." }"#);
    let tui = stage.open("go");
    tui.wait_for_text("Part", PATIENCE).await.unwrap();
    tui.press(Key::Control('c')).unwrap();
    let shown = ended(&tui, 130).await;
    assert!(shown.contains("interrupted") && !shown.contains("Never"), "{shown}");
}

#[tokio::test]
async fn ctrl_c_twice_leaves_a_cli_that_does_not_listen() {
    let stage = Stage::new(
        "ignore = [\"interrupt\"]\n[[turn]]\nsteps = [{ text = \"Part one.\\n\" }, { wait = \"interrupt\" }, { text = \"x\" }]\n",
    );
    let tui = stage.open("go");
    tui.wait_for_text("Part one.", PATIENCE).await.unwrap();
    tui.press(Key::Control('c')).unwrap();
    tui.wait_for_text("Ctrl-C again leaves", PATIENCE).await.unwrap();
    tui.press(Key::Control('c')).unwrap();
    ended(&tui, 130).await;
}

#[tokio::test]
async fn ctrl_c_takes_a_question_back() {
    let stage = runs();
    let tui = stage.open("go");
    asked(&tui, ALLOW).await;
    tui.press(Key::Control('c')).unwrap();
    let shown = ended(&tui, 130).await;
    assert!(shown.contains("(no longer asked)"), "{shown}");
}

#[tokio::test]
async fn a_dialogue_has_several_turns_and_outlives_an_interrupt() {
    let stage = Stage::new(
        "[[turn]]\nwhen = \"slow\"\nsteps = [{ text = \"Part one\" }, { wait = \"interrupt\" }, { text = \"Never.\" }]\n\
         [[turn]]\nsteps = [{ text = \"You said: ${prompt}\" }]\n\
         [[turn]]\nsteps = [{ text = \"And then: ${prompt}\" }]\n",
    );
    let tui = stage.open("");
    let prompted = |screen: &str, times: usize| {
        let is_last = screen.lines().rev().map(str::trim).find(|line| !line.is_empty()) == Some(">");
        is_last && screen.lines().filter(|line| line.starts_with('>')).count() == times
    };
    tui.wait_until("the prompt", PATIENCE, |screen| prompted(screen, 1)).await.unwrap();
    answer(&tui, "slow");
    tui.wait_for_text("Part", PATIENCE).await.unwrap();
    tui.press(Key::Control('c')).unwrap();
    tui.wait_until("the second prompt", PATIENCE, |screen| prompted(screen, 2)).await.unwrap();
    answer(&tui, "two");
    tui.wait_for_text("two", PATIENCE).await.unwrap();
    tui.wait_until("the third prompt", PATIENCE, |screen| prompted(screen, 3)).await.unwrap();
    answer(&tui, "three \\");
    tui.wait_for_text("…", PATIENCE).await.unwrap();
    answer(&tui, "four");
    tui.wait_until("the last prompt", PATIENCE, |screen| prompted(screen, 4)).await.unwrap();
    answer(&tui, "");
    let shown = ended(&tui, 0).await;
    assert!(
        shown.contains("interrupted") && shown.contains("You said: two") && shown.contains("four"),
        "{shown}"
    );
    assert!(!shown.contains("Never."), "{shown}");
}

#[tokio::test]
async fn ctrl_c_at_the_prompt_leaves() {
    let stage = Stage::new("");
    let tui = stage.open("");
    tui.wait_until("the prompt", PATIENCE, |screen| screen.ends_with("\n>")).await.unwrap();
    tui.press(Key::Control('c')).unwrap();
    ended(&tui, 130).await;
}

#[tokio::test]
async fn thinking_is_shown_summed_up_or_hidden() {
    let stage = Stage::turn(r#"{ thinking = "Consider the options." }, { text = "Option one." }"#);
    for (mode, wanted, unwanted) in [
        ("show", "Consider the options.", "thought for"),
        ("summary", "thought for", "Consider"),
        ("hide", "Option one.", "thought for"),
    ] {
        let tui = stage.open(&format!("--thinking {mode} go"));
        let shown = ended(&tui, 0).await;
        assert!(shown.contains(wanted) && !shown.contains(unwanted), "{mode}: {shown}");
    }
}

#[tokio::test]
async fn the_spinner_is_there_while_it_works_and_gone_afterwards() {
    let stage = Stage::turn(
        r#"{ tool = "Bash", input = { command = "sleep 5" }, ask = false, lasts_ms = 1200, output = "slept" }, { text = "Up." }"#,
    );
    let tui = stage.open("go");
    tui.wait_for_text("Ctrl-C interrupts", PATIENCE).await.unwrap();
    let shown = ended(&tui, 0).await;
    assert!(shown.contains("slept") && !shown.contains("Ctrl-C interrupts"), "{shown}");
}

#[tokio::test]
async fn what_runs_in_the_background_is_waited_for() {
    let stage = Stage::turn(
        r#"{ tool = "Bash", input = { command = "make", description = "build", run_in_background = true }, ask = false, lasts_ms = 1500, then = [{ text = "The build is done." }] }, { text = "Started." }"#,
    );
    let tui = stage.open("go");
    tui.wait_for_text("waiting for what runs in the background", PATIENCE).await.unwrap();
    let shown = ended(&tui, 0).await;
    assert!(shown.contains("Started.") && shown.contains("The build is done."), "{shown}");
}

#[tokio::test]
async fn the_answer_goes_to_a_file_and_the_questions_to_the_terminal() {
    let stage = writes();
    let tui = stage.open("write > answer.txt");
    asked(&tui, ALLOW).await;
    answer(&tui, "y");
    let shown = ended(&tui, 0).await;
    assert!(!shown.contains("Well."), "{shown}");
    assert_eq!(stage.file("answer.txt").unwrap(), "Well.\n");
}

#[tokio::test]
async fn with_a_pipe_for_stdin_the_terminal_is_still_asked() {
    let stage = runs();
    let program = env!("CARGO_BIN_EXE_oarlock");
    let tui = stage.open(&format!("--help > help.txt; echo diff | '{program}' run look"));
    let shown = asked(&tui, ALLOW).await;
    assert!(shown.contains("mkdir x"), "{shown}");
    answer(&tui, "q");
    ended(&tui, 4).await;
    assert!(stage.file("help.txt").unwrap().contains("Exit codes:"));
}

#[tokio::test]
async fn the_model_cannot_send_escape_sequences_to_the_terminal() {
    let stage = Stage::turn(
        r#"{ text = "Look: \u001b[2J\u001b]0;gotcha\u0007 &#27;[2J\n" }, { tool = "Bash", input = { command = "echo \u001b[2J" }, output = "\u001b[31mred", ask = false }, { text = "Well." }"#,
    );
    let shown = ended(&stage.open("go"), 0).await;
    for part in ["\\u{1b}[2J\\u{1b}]0;gotcha\\u{7} \\u{1b}[2J", "echo \\u{1b}[2J", "\\u{1b}[31mred"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
}

#[tokio::test]
async fn the_value_of_a_schema_stands_on_lines_of_its_own() {
    let stage = Stage::turn(
        r#"{ tool = "Bash", input = { command = "sleep 1" }, ask = false, lasts_ms = 700, output = "" }, { structured_output = { name = "bob" } }"#,
    );
    let tui = stage.open(r#"--schema '{"type":"object"}' go"#);
    tui.wait_for_text("Ctrl-C interrupts", PATIENCE).await.unwrap();
    let shown = ended(&tui, 0).await;
    assert!(shown.lines().any(|line| line.trim_end() == r#"{"name":"bob"}"#), "{shown}");
}
