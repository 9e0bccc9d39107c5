//! `oarlock ide list`.

mod home;

use home::Home;

#[test]
fn none_says_how_to_start_one() {
    let home = Home::new();
    let ran = home.run(&["ide", "list"]);
    assert_eq!(ran.code, Some(0));
    assert!(ran.stdout.contains("oarlock serve"), "{}", ran.stdout);
    assert_eq!(home.run(&["ide", "list", "--json"]).json()["candidates"], serde_json::json!([]));
}

#[test]
fn one_that_fits_and_one_elsewhere() {
    let home = Home::new();
    let here = home.engine(&home.workspace());
    let elsewhere = home.engine(&home.at("elsewhere"));
    let ran = home.run(&["ide", "list"]);
    assert_eq!(ran.code, Some(0));
    for part in [
        "Oarlock (Oarlock 0.1.0)".to_owned(),
        format!("port {} open", here.port()),
        format!("process {} alive", std::process::id()),
        format!("yes, {} contains this directory", home.workspace().display()),
        "none of its folders contains this directory".to_owned(),
        format!("oarlock claude --engine {}", elsewhere.port()),
        "`claude --ide` connects to Oarlock".to_owned(),
    ] {
        assert!(ran.stdout.contains(&part), "{part}\n{}", ran.stdout);
    }
    let shown = home.run(&["ide", "list", "--json"]).json();
    assert_eq!(shown["verdict"]["ide_flag"]["port"], here.port());
    let lock = std::fs::read_to_string(here.lock_path()).unwrap();
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    let token = lock["authToken"].as_str().unwrap();
    assert!(!shown.to_string().contains(token) && !ran.stdout.contains(token), "no token leaves");
}

#[test]
fn two_that_fit_are_ambiguous_and_a_stale_one_says_why() {
    let home = Home::new();
    let _a = home.engine(&home.workspace());
    let _b = home.engine(&home.workspace());
    let stale =
        home.write(".claude/ide/1.lock", r#"{"pid":4000000,"ideName":"Old\u001b[31m","transport":"ws"}"#);
    let ran = home.run(&["ide", "list"]);
    assert!(ran.stdout.contains("connects to none: ports"), "{}", ran.stdout);
    assert!(ran.stdout.contains("its process 4000000 is gone"), "{}", ran.stdout);
    assert!(!ran.stdout.contains('\u{1b}'), "a lock file does not steer the terminal");
    assert!(stale.exists(), "it only reads");
}
