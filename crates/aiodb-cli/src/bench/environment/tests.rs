use super::*;

#[test]
fn fields_are_found_by_their_whole_name() {
    let text = "processor\t: 0\nmodel name\t: Some CPU: fast @ 3.2GHz\nmodel\t\t: 6\nMemTotal:  16 kB\n";
    assert_eq!(field(text, "model name").as_deref(), Some("Some CPU: fast @ 3.2GHz"));
    assert_eq!(field(text, "model").as_deref(), Some("6"));
    assert_eq!(field(text, "Mem"), None);
}

#[test]
fn this_machine_is_described() {
    let environment = Environment::of(Path::new("/"));
    assert!(environment.cores > 0);
    assert!(environment.memory_bytes > 1 << 20);
    assert!(environment.kernel.starts_with("Linux "));
    assert!(environment.date_utc.ends_with('Z'));
}
