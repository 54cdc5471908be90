//! `completion` and `man`.

use crate::{Ran, aiodb};
use tempfile::TempDir;

/// The names of all subcommands, as the help lists them.
fn subcommands() -> Vec<String> {
    let help = Ran::of(aiodb(["--help"]).env("COLUMNS", "200")).exits(0).text();
    let list = help.split("Commands:\n").nth(1).expect("the help lists the subcommands");
    let names =
        list.lines().take_while(|line| line.starts_with("  ")).filter_map(|line| line.split_whitespace().next());
    let names: Vec<String> = names.filter(|name| *name != "help").map(str::to_string).collect();
    for name in ["load", "get", "stat", "bench", "completion", "man"] {
        assert!(names.iter().any(|known| known == name), "{name} is missing in {names:?}");
    }
    names
}

#[test]
fn each_shell_gets_a_script_that_knows_all_subcommands() {
    for (shell, sign) in [("bash", "complete -F"), ("zsh", "#compdef aiodb"), ("fish", "complete -c aiodb")] {
        let script = Ran::of(&mut aiodb(["completion", shell])).exits(0).text();
        assert!(script.contains(sign), "{shell}: {}", &script[..200]);
        for name in subcommands() {
            assert!(script.contains(&name), "{name} is missing in the script for {shell}");
        }
    }
    Ran::of(&mut aiodb(["completion", "tcl"])).exits(2);
}

#[test]
fn the_manual_page_names_all_subcommands_and_each_has_its_own() {
    let page = Ran::of(&mut aiodb(["man"])).exits(0).text();
    let dir = TempDir::new().unwrap();
    let pages = dir.path().join("man1");
    Ran::of(aiodb(["man", "--dir"]).arg(&pages)).exits(0);
    assert!(std::fs::read_to_string(pages.join("aiodb.1")).unwrap().contains(".TH aiodb 1"));
    for name in subcommands() {
        assert!(page.contains(&format!("aiodb\\-{}(1)", name.replace('-', "\\-"))), "{name} is missing in\n{page}");
        let own = std::fs::read_to_string(pages.join(format!("aiodb-{name}.1"))).unwrap();
        assert!(own.contains(".SH SYNOPSIS"), "{own}");
    }
}

#[test]
fn a_manual_that_cannot_be_written_is_an_error() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    Ran::of(aiodb(["man", "--dir"]).arg(file.join("man1"))).exits(3);
}
