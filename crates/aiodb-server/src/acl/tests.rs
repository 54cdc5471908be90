use super::*;

/// A container with two subcommands between commands that read and write.
fn catalog() -> Catalog {
    let in_categories = |names: &'static [&'static str]| CATEGORIES.map(|category| names.contains(&category));
    let commands: [(&'static str, &'static [&'static str]); 6] = [
        ("get", &["@read", "@string", "@fast"]),
        ("set", &["@write", "@string", "@slow"]),
        ("config", &["@slow"]),
        ("config|get", &["@admin", "@dangerous", "@slow"]),
        ("config|set", &["@admin", "@dangerous", "@slow"]),
        ("auth", &["@connection", "@fast"]),
    ];
    Catalog::new(commands.into_iter().map(|(name, names)| (name, in_categories(names))))
}

fn rules(text: &'static str) -> Rules {
    let mut rules = Rules::default();
    let changes: Vec<Bytes> = text.split(' ').map(Bytes::from).collect();
    rules.change(&changes, &catalog()).unwrap_or_else(|error| panic!("{text}: {error:?}"));
    rules
}

fn attempt<'a>(command: &'static str, arguments: &'a [Bytes], keys: &[(usize, &str)]) -> Attempt<'a> {
    let keys = keys.iter().map(|(at, flags)| (*at, Access::of_flags(flags))).collect();
    Attempt { command, is_for_all: command == "auth", arguments, keys, channels: 0..0, are_patterns: false }
}

#[test]
fn rules_make_the_same_user_again() {
    for (text, expected) in [
        ("on", "on resetchannels -@all"),
        ("+@all -get", "off resetchannels +@all -@read"),
        ("+@string", "off resetchannels -@all +@string"),
        ("+@admin", "off resetchannels -@all +@admin"),
        ("+config", "off resetchannels -@all +@admin +config"),
        ("+config -config|set", "off resetchannels -@all +config -config|set"),
        ("+get|a +get|B +GET|b", "off resetchannels -@all +get|a +get|B"),
        ("~a %R~b %W~b %R~c allchannels", "off ~a ~b %R~c &* -@all"),
        ("nopass (+get ~x &y) &z", "off nopass resetchannels &z -@all (~x resetchannels &y -@all +@read)"),
    ] {
        let described = rules(text).text(&catalog());
        let described = String::from_utf8(described.to_vec()).unwrap();
        let again: Vec<Bytes> = described.split(' ').map(|rule| rule.to_string().into()).collect();
        let mut copy = Rules::default();
        copy.change(&again, &catalog()).unwrap();
        assert_eq!(copy.text(&catalog()), described, "{text}");
        assert_eq!(described, expected, "{text}");
    }
}

#[test]
fn a_selector_must_allow_all_of_a_command() {
    let arguments: Vec<Bytes> = ["set", "a", "b"].map(Bytes::from).to_vec();
    let set = |keys: &[(usize, &str)]| attempt("set", &arguments, keys);
    let check = |text, keys: &[(usize, &str)]| rules(text).check(&set(keys));
    let (first, second) = ((1, "OW update"), (2, "RO access"));
    assert_eq!(check("+get ~*", &[first]), Err(Denial::Command));
    assert_eq!(check("+set", &[first]), Err(Denial::Key(1)));
    assert_eq!(check("+set ~a", &[first, second]), Err(Denial::Key(2)));
    assert_eq!(check("+set %W~a %R~b", &[first, second]), Ok(()));
    assert_eq!(check("+set %R~a %R~b", &[first, second]), Err(Denial::Key(1)));
    assert_eq!(check("+set %R~a", &[(1, "RO")]), Ok(()));
    assert_eq!(check("+set (~* +get)", &[first]), Err(Denial::Key(1)));
    assert_eq!(check("+set (~* +@all)", &[first, second]), Ok(()));
    assert_eq!(check("+set|A ~*", &[first]), Ok(()));
    assert_eq!(check("+set|b ~*", &[first]), Err(Denial::Command));
    assert_eq!(Rules::default().check(&attempt("auth", &arguments, &[])), Ok(()));
}

#[test]
fn passwords_are_right_or_not() {
    let user = rules("on >one >two");
    assert!(user.admits(b"one") && user.admits(b"two") && !user.admits(b"three") && !user.admits(b""));
    assert!(!rules("off >one").admits(b"one"));
    assert!(!rules("on").admits(b""));
    assert!(rules("on >one nopass").admits(b"anything"));
    assert!(!rules("on nopass resetpass").admits(b"anything"));
    assert!(!rules("on >one >two <one").admits(b"one"));
    let hash = "#2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";
    assert!(rules(hash).text(&catalog()).ends_with(b"-@all"));
    let mut user = Rules::default();
    user.change(&[hash.into(), "on".into()], &catalog()).unwrap();
    assert!(user.admits(b"secret"));
}

/// Each saves after its own change, so that whoever saves last has seen all.
#[test]
fn the_last_save_stays() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("users.acl");
    let acl = Acl::new(catalog(), &Config::default()).unwrap();
    let names = ["alice", "bob", "carol", "dave"];
    for round in 0..50 {
        std::thread::scope(|scope| {
            for name in names {
                let (acl, path) = (&acl, &path);
                scope.spawn(move || {
                    acl.change(name.as_bytes(), &[format!("~{round}").into()]).unwrap();
                    acl.save(path).unwrap();
                });
            }
        });
        let saved = std::fs::read_to_string(&path).unwrap();
        for user in acl.all() {
            let line = acl.line(&user);
            let line = std::str::from_utf8(&line).unwrap();
            assert!(saved.lines().any(|other| other == line), "round {round}: {line} is not in {saved}");
        }
    }
}
