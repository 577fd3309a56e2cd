//! A password that stands in the arguments is not shown, whatever is wrong with them.

use std::process::{Command, Stdio};

use crate::program::{program, run};

const PASSWORD: &str = "hunter2";

#[test]
fn a_store_that_is_mistyped_is_named_without_its_password() {
    for store in [
        "postgress://ledger:hunter2@db.internal/rewards",
        "ledger:hunter2@db.internal",
        "host=db.internal password=hunter2",
        "postgres://ledger:hunter2@db.internal/rewards?sslmod=require",
        "postgres://ledger:hunter2@db.internal/rewards?sslmode=verify",
        "postgres://ledger:hunter2@db.internal:port/rewards",
    ] {
        let exit = run(store, &["audit"]);
        assert!(matches!(exit.code, Some(1 | 2)), "{exit:#?}");
        assert!(
            !exit.stderr.contains(PASSWORD) && !exit.stdout.contains(PASSWORD),
            "{exit:#?}"
        );
        assert!(exit.stderr.len() > 30, "it says what is wrong: {exit:#?}");
    }
}

#[test]
fn an_argument_that_is_mistyped_is_named_without_its_password() {
    let url = "postgres://ledger:hunter2@db.internal/rewards";
    let glued = format!("--stor={url}");
    for words in [
        &["audit", url] as &[&str],
        &["audit", "--stor", url],
        &["audit", &glued],
        &[url],
        &["outbox", url],
        &["serve", "--listen", url],
    ] {
        let exit = run("memory:", words);
        assert_eq!(exit.code, Some(2), "{words:?}: {exit:#?}");
        assert!(!exit.stderr.contains(PASSWORD), "{words:?}: {exit:#?}");
    }
    let mistyped = run("memory:", &["audit", "--unheard"]);
    assert!(
        mistyped.code == Some(2) && mistyped.stderr.contains("--unheard"),
        "{mistyped:#?}"
    );
}

#[test]
fn a_store_of_the_environment_is_not_shown_either() {
    for words in [
        &["audit", "--help"] as &[&str],
        &["audit"],
        &["serve", "--target-tries", "x"],
    ] {
        let output = Command::new(program("memory:", &[]).get_program())
            .args(words)
            .env(
                "REWARD_LEDGER_STORE",
                "postgress://ledger:hunter2@db.internal/rewards",
            )
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = [output.stdout, output.stderr].concat();
        let said = String::from_utf8(said).unwrap();
        assert!(!said.contains(PASSWORD), "{words:?}: {said}");
    }
}

#[test]
fn a_target_that_is_mistyped_is_named_without_its_password() {
    for target in [
        "htp://ledger:hunter2@items/",
        "http://ledger:hunter2@items:port/",
        "ledger:hunter2@items",
    ] {
        let exit = run(
            "memory:",
            &["serve", "--listen", "127.0.0.1:0", "--target", target],
        );
        assert!(
            exit.code == Some(1) && exit.stderr.contains("target"),
            "{exit:#?}"
        );
        assert!(!exit.stderr.contains(PASSWORD), "{exit:#?}");
    }
}
