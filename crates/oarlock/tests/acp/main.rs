//! `oarlock acp` between a client and a CLI: both real versions with a scripted model, and the scripted CLI.
//!
//! A scenario is a function that plays a client. Whatever it is about, every run must also keep the laws of
//! `testkit::acp::laws`, and leave no process behind. Scenarios that prove a clause of PROTOCOL.md carry its id,
//! those about a fault that users have reported carry its thread.
//!
//! By default every scenario runs once on the newest CLI, those that can also on the scripted one, and a fixed tenth
//! on the oldest; `--full`, or `OARLOCK_E2E=full`, runs all cells. `OARLOCK_ACP_SHOW=1` prints all lines.

#![allow(clippy::print_stdout, clippy::print_stderr, reason = "this is the test program's own report")]

mod asks;
mod cancels;
mod choices;
mod faults;
mod lifetimes;
mod peers;
mod rewinds;
mod sessions;
mod stage;
mod starts;
mod threads;
mod tools;
mod turns;
mod wire;

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use libtest_mimic::Trial;
use oarlock_testkit::acp::peers::Peer;
use oarlock_testkit::acp::schema::{self, Schemas};
use oarlock_testkit::cage;
use oarlock_testkit::cli::{Cli, Program};
use oarlock_testkit::install::Availability;
use oarlock_testkit::report::{self, Times};

use stage::Stage;

/// In which cells a scenario runs.
#[derive(Clone, Copy, PartialEq)]
enum Reach {
    /// The scripted and the newest CLI; the oldest too in a full run.
    Any,
    /// The newest CLI; the oldest too in a full run.
    Real,
    /// Both real CLIs, always: the fixed tenth, chosen to show each kind of traffic.
    Both,
    /// Something that only the newest does.
    Newest,
    /// Something that only the oldest does.
    Oldest,
    /// The scripted CLI, or a fake.
    Fake,
}

impl Reach {
    fn programs(self, full: bool) -> &'static [Program] {
        match self {
            Self::Any if full => &[Program::Scripted, Program::Newest, Program::Oldest],
            Self::Any => &[Program::Scripted, Program::Newest],
            Self::Real if !full => &[Program::Newest],
            Self::Real | Self::Both => &[Program::Newest, Program::Oldest],
            Self::Newest => &[Program::Newest],
            Self::Oldest => &[Program::Oldest],
            Self::Fake => &[Program::Scripted],
        }
    }
}

type Body = fn(Stage) -> Pin<Box<dyn Future<Output = Result<()>> + Send>>;

struct Scenario {
    name: &'static str,
    reach: Reach,
    body: Body,
}

/// One row for each scenario: its path is its name.
macro_rules! scenarios {
    ($($module:ident { $($name:ident $reach:ident),* $(,)? })*) => {
        &[$($(Scenario {
            name: stringify!($name),
            reach: Reach::$reach,
            body: |stage| Box::pin($module::$name(stage)),
        }),*),*]
    };
}

const SCENARIOS: &[Scenario] = scenarios![
    wire {
        init_zed Fake,
        init_full Fake,
        init_bare Fake,
        acp_init_01_acp_wire_01_versions_are_agreed_on Fake,
        acp_init_02_initialize_starts_nothing Fake,
        acp_init_04_nothing_is_served_before_initialize Fake,
        acp_wire_03_unknown_messages_and_fields_are_survived Fake,
        acp_wire_04_junk_is_answered_and_survived Fake,
        acp_wire_05_ids_come_back_as_they_were_sent Fake,
        acp_wire_06_a_request_can_be_cancelled Fake,
        acp_new_01_a_session_needs_a_directory Fake,
        acp_prompt_04_an_unknown_session_is_not_found Fake,
        acp_prompt_06_content_is_taken_or_refused_by_kind Any,
        acp_sec_01_no_credential_comes_out Real,
        errors Fake,
        a_trace_records_both_sides_without_secrets Fake,
        logs_go_to_a_file Fake,
        caa_29_logging_in_is_the_clis_own Fake,
    }
    starts {
        caa_184_the_claude_that_is_named_is_driven Fake,
        a_wrong_command_line_says_what_is_wrong Fake,
        without_a_cli_nothing_is_lost Fake,
        at_a_terminal_it_says_what_it_is Fake,
        a_broken_configuration_is_told Fake,
        acpel_10_the_reason_of_a_death_is_not_its_stack Fake,
        a_trace_can_be_played_again Fake,
    }
    turns {
        text Both,
        acp_wire_02_acp_prompt_01_text_streams_and_the_turn_ends Any,
        thinking Any,
        image Real,
        commands Real,
        commands_full Real,
        compact Real,
        compact_full Real,
        queue Real,
        acp_prompt_05_two_prompts_at_once_are_both_answered Any,
        acp_prompt_02_an_api_error_is_told_once Both,
        error Real,
        auth_error Real,
        acp_use_01_cost_is_of_the_turn Any,
        acp_use_01_cost_is_of_the_turn_after_a_restart Real,
        caa_625_usage_has_the_window Real,
        caa_630_a_turn_without_a_result_is_answered Fake,
        caa_871_caa_1027_a_steered_turn_ends_once Real,
        caa_871_steering_an_idle_session Real,
        caa_1027_a_message_that_is_late_is_told_all_the_same Real,
        a_steered_message_outlives_its_cli Real,
        zed_53438_zed_47928_a_prompt_during_a_turn_is_answered Real,
        zed_55501_a_usage_limit_leaves_the_session_usable Real,
        zed_56375_thinking_can_be_asked_for Fake,
        caa_766_a_client_can_ask_for_thinking Real,
        retries_are_told_while_they_happen Fake,
        caa_62_max_turns_is_a_stop_reason Real,
        acp_cost_01_no_call_is_hidden Both,
        stop_reasons_are_the_models Fake,
        caa_1132_cline_14251_a_rate_limit_is_told_once Fake,
        harnss_14_without_a_home_prompts_are_answered Fake,
        a_payload_is_sent_once Real,
        another_agent_answers_the_next_prompt Both,
    }
    tools {
        read Any,
        write Any,
        acp_tool_01_acp_tool_02_acp_tool_03_edit Both,
        acp_tool_04_a_call_runs_after_its_permission Any,
        acp_perm_01_edit_reject Any,
        acp_perm_01_edit_always Real,
        bash Both,
        bash_bare Real,
        acp_init_03_a_bare_client_gets_only_what_it_knows Real,
        bash_permission Real,
        search Real,
        todo Fake,
        acp_plan_01_todo Oldest,
        acp_plan_01_tasks Oldest,
        subagent Any,
        subagent_full Real,
        caa_708_subagent_permission Both,
        bash_background Both,
        caa_651_caa_739_output_is_live Real,
        caa_336_caa_864_a_background_command_ends_by_itself Real,
        zed_62488_a_background_subagent_does_not_hold_the_session Newest,
        caa_360_a_diff_has_the_whole_file Real,
        caa_333_edits_can_go_through_the_editor Real,
        mcp_tools_have_readable_titles Real,
        an_http_server_is_used Both,
        an_sse_server_is_used Real,
        a_server_can_ask_for_an_address_to_be_opened Newest,
    }
    asks {
        plan_mode Both,
        plan_reject Real,
        ask Both,
        caa_23_a_question_without_forms_is_a_choice Real,
        acp_perm_02_a_client_that_never_answers Real,
        acp_perm_03_the_scope_of_always_is_in_its_name Real,
        caa_94_deny_rules_hold Real,
        caa_272_zed_37632_always_is_kept_within_its_scope Real,
        caa_329_allow_rules_of_the_project_hold Real,
        parallel_permissions Real,
        what_is_asked_about_is_what_is_shown Fake,
        fountain_999_an_elicitation_of_a_server_is_a_form Newest,
    }
    cancels {
        cancel Both,
        acp_cancel_01_cancel_in_five_cases Real,
        cancel_early Real,
        cancel_tool Real,
        acp_cancel_02_a_permission_is_withdrawn Real,
        acp_cancel_03_the_next_prompt_is_not_denied Real,
        caa_415_cancel_after_load Real,
        caa_551_caa_680_cancelled_once Real,
        cancel_a_queued_prompt Real,
        a_cancelled_prompt_does_not_come_back Both,
        a_cancel_takes_steering_with_it Both,
        a_cancel_stops_the_agents_of_a_held_prompt Both,
        a_yes_after_a_cancel_is_none Fake,
        a_cancelled_turn_asks_nothing Fake,
        a_cancelled_edit_is_not_written Both,
        a_cancel_while_a_server_hangs Real,
    }
    choices {
        config Both,
        what_is_chosen_stays_with_its_session Both,
        acp_new_03_acp_conf_01_modes_and_options_agree Real,
        caa_30_models_are_an_option Real,
        caa_93_any_model_is_accepted Real,
        software_agent_sdk_3654_a_model_in_meta_is_honoured Real,
        caa_495_auto_mode_is_never_fatal Real,
        caa_108_bypass_is_not_offered_to_root Real,
        zed_53225_commands_are_there Real,
        acp_new_02_caa_880_a_hanging_mcp_server_does_not_hold_the_session Real,
        claude_code_13329_a_failing_mcp_server_is_told Real,
        caa_567_the_second_session_is_there_at_once Real,
        zed_52054_a_session_has_its_own_environment Real,
        additional_directories_are_open Real,
    }
    sessions {
        acp_load_01_acp_load_02_load Both,
        aionui_2890_replay_has_stable_message_ids Real,
        resume Both,
        fork Both,
        caa_1048_caa_71_fork_at_a_message Real,
        acp_load_03_list_pages_and_delete_forgives Real,
        caa_130_sessions_of_the_cli_are_listed Real,
        zed_55888_a_cleared_session_goes_on Real,
        zed_54411_a_title_can_be_set Real,
        load_while_it_is_open Real,
        a_session_is_listed_after_its_first_turn Real,
        a_fork_waits_for_its_message Real,
    }
    rewinds {
        caa_71_a_conversation_can_be_rewound Both,
    }
    faults {
        acp_prompt_03_caa_734_a_killed_cli_answers_the_prompt Both,
        killed_at_random_points_of_a_turn Real,
        caa_338_a_dead_cli_comes_back Both,
        caa_570_caa_361_the_reason_of_a_death_is_told Fake,
        a_cli_that_hangs_at_its_start Fake,
        a_cli_that_hangs_in_a_turn Fake,
        a_cli_that_prints_garbage Fake,
        a_cli_that_dies_at_once Fake,
        agent_shell_305_without_a_cli_the_error_says_how_to_get_one Fake,
        a_full_disk_for_the_transcript Real,
        acp_end_03_a_client_that_stops_reading Fake,
        a_cli_that_never_begins_the_turn Fake,
        cancels_in_a_row_do_not_put_off_the_answer Fake,
        a_cli_that_babbles_lives_on Fake,
        a_closed_session_begins_nothing Fake,
    }
    lifetimes {
        acp_end_01_the_end_of_stdin_ends_everything Both,
        acp_end_02_signals_end_everything Real,
        caa_1011_openclaw_70860_a_killed_agent_leaves_no_cli Real,
        closing_a_session_ends_its_commands Real,
        sixty_four_sessions_come_and_go Fake,
        eight_real_sessions_come_and_go Newest,
        an_idle_session_is_parked_and_comes_back Fake,
        a_session_has_one_cli_at_a_time Fake,
        a_reopened_session_has_one_cli_at_a_time Newest,
        loading_a_busy_session_leaves_it_busy Both,
        a_deleted_session_stays_deleted Newest,
        commands_in_the_background_end_with_all Both,
    }
];

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("acp: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let (full, arguments) = report::arguments();
    let target = target()?;
    if !arguments.list {
        // Outside the cage the network is there, so everything is fetched before it closes.
        if !cage::entered()
            && let Some(why) = missing(&target)?
        {
            let names: Vec<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
            println!("skipped: acp: {why}; not run: {}", names.join(", "));
            return Ok(ExitCode::from(u8::from(report::on_ci())));
        }
        cage::enter()?;
    }
    let schemas = if arguments.list { None } else { Some(Arc::new(Schemas::read(&target)?)) };

    let times = Times::default();
    let cells = SCENARIOS
        .iter()
        .flat_map(|scenario| scenario.reach.programs(full).iter().map(move |program| (scenario, *program)));
    let mut trials: Vec<Trial> = cells
        .map(|(scenario, program)| {
            let (target, schemas) = (target.clone(), schemas.clone());
            times.trial(format!("{}::{}", threads::name_of(scenario.name), program.name()), move || {
                let schemas = schemas.context("the schemas are read")?;
                block_on(async { (scenario.body)(Stage::new(program, &target, schemas).await?).await })
            })
        })
        .collect();
    for (peer, scenario, program) in peers::cells(full) {
        let (target, schemas) = (target.clone(), schemas.clone());
        let name = format!("{}_{}::{}", peer.name(), scenario.name(), program.name());
        trials.push(times.trial(name, move || {
            let schemas = schemas.context("the schemas are read")?;
            block_on(async {
                let stage = Stage::new(program, &target, schemas).await?;
                peers::play(stage, peer, scenario, &target).await
            })
        }));
    }
    trials.push(
        times.trial("every_thread_has_its_scenario".to_owned(), threads::every_thread_has_its_scenario),
    );
    let conclusion = libtest_mimic::run(&arguments, trials);
    times.print();
    Ok(conclusion.exit_code())
}

fn block_on(body: impl Future<Output = Result<()>>) -> Result<()> {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?.block_on(body)
}

/// Fetches what the cells need; says what cannot be had on this machine.
fn missing(target: &Path) -> Result<Option<String>> {
    if let Availability::Missing(why) = schema::obtain(target)? {
        return Ok(Some(why));
    }
    for program in [Program::Newest, Program::Oldest] {
        if let Some(version) = program.version()
            && let Availability::Missing(why) = Cli::obtain(&target.join("claude-cli"), version)?
        {
            return Ok(Some(why));
        }
    }
    for peer in Peer::ALL {
        if let Availability::Missing(why) = peer.obtain(target, Path::new(peers::RUST_CLIENT))? {
            return Ok(Some(why));
        }
    }
    Ok(None)
}

/// Where downloads are kept.
fn target() -> Result<PathBuf> {
    Ok(Path::new(env!("CARGO_TARGET_TMPDIR")).parent().context("no target directory")?.to_owned())
}
