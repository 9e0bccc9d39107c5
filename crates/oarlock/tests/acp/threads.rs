//! Which scenario stands for which complaint of users. Many threads are about one fault; each of them is here.

use anyhow::{Result, ensure};

use crate::SCENARIOS;

/// Threads as `repository_number` (`caa` is the reference adapter), and the scenario that would fail with their fault.
/// A scenario that carries a thread in its name needs no row.
const THREADS: &[(&[&str], &str)] = &[
    (
        &["tidewave_app_86", "acpx_71", "acpx_29", "jupyter_ai_101", "oh_my_pi_1123"],
        "caa_567_the_second_session_is_there_at_once",
    ),
    (&["jupyter_ai_77", "selfdrivingwiki_615"], "queue"),
    (&["openclaw_29979"], "caa_570_caa_361_the_reason_of_a_death_is_told"),
    (&["openclaw_44790", "openclaw_68916", "claude_mem_603"], "acp_end_02_signals_end_everything"),
    (
        &[
            "intelligent_terminal_640",
            "codeg_220",
            "llm_agents_nix_7073",
            "tidewave_phoenix_241",
            "gold_band_58",
            "obsidian_yolo_562",
            "agent_orchestrator_3925",
            "zed_50807",
            "zed_50657",
            "claude_code_api_rs_13",
        ],
        "agent_shell_305_without_a_cli_the_error_says_how_to_get_one",
    ),
    (&["caa_820", "buzz_172"], "acp_perm_03_the_scope_of_always_is_in_its_name"),
    (&["caa_312"], "caa_108_bypass_is_not_offered_to_root"),
    (&["caa_378", "zed_51803", "agent_shell_402"], "caa_333_edits_can_go_through_the_editor"),
    (&["agent_of_empires_1075", "claude_code_34732", "claude_code_26983"], "caa_651_caa_739_output_is_live"),
    (
        &["caa_865", "caa_824", "caa_866", "caa_997", "caa_1017"],
        "zed_62488_a_background_subagent_does_not_hold_the_session",
    ),
    (
        &["caa_531", "neverwrite_342", "agentconnect_1847", "openclaw_154349"],
        "caa_871_caa_1027_a_steered_turn_ends_once",
    ),
    (&["caa_966", "caa_872", "acp_1214"], "caa_1048_caa_71_fork_at_a_message"),
    (&["caa_18"], "ask"),
    (&["zed_61996", "codecompanion_2259"], "zed_53225_commands_are_there"),
    (&["caa_70", "caa_517", "caa_782", "openhands_14317"], "auth_error"),
    (&["caa_441", "caa_389", "codex_acp_43"], "config"),
    (&["caa_568", "caa_344"], "acp_use_01_cost_is_of_the_turn"),
    (&["caa_1037"], "caa_1132_cline_14251_a_rate_limit_is_told_once"),
    (&["caa_226", "caa_297"], "zed_56375_thinking_can_be_asked_for"),
];

/// A scenario's name with all its threads, so that each can be run by the name of its thread.
pub(crate) fn name_of(scenario: &str) -> String {
    let threads = THREADS.iter().filter(|(_, of)| *of == scenario).flat_map(|(threads, _)| *threads);
    threads.fold(scenario.to_owned(), |name, thread| format!("{name}+{thread}"))
}

/// No row leads nowhere, and no thread is there twice.
pub(crate) fn every_thread_has_its_scenario() -> Result<()> {
    let mut seen = std::collections::BTreeSet::new();
    for (threads, scenario) in THREADS {
        ensure!(SCENARIOS.iter().any(|known| known.name == *scenario), "there is no scenario {scenario}");
        for thread in *threads {
            ensure!(seen.insert(thread), "{thread} is there twice");
            let is_name = |known: &crate::Scenario| known.name.contains(&format!("{thread}_"));
            ensure!(!SCENARIOS.iter().any(is_name), "{thread} is in a name already");
        }
    }
    Ok(())
}
