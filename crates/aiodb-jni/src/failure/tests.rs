use super::*;

#[test]
fn a_panic_is_a_failure_with_its_message() {
    let failure = caught(|| -> Result<()> { panic!("the count {} is odd", 3) }).unwrap_err();
    assert_eq!(failure.class(), "Defect");
    assert!(failure.to_string().contains("the count 3 is odd"), "{failure}");
}

#[test]
fn a_failure_of_the_engine_keeps_its_words() {
    let failure = caught(|| -> Result<()> { Err(aiodb::Error::NoSuchTable { name: "t".into() }.into()) }).unwrap_err();
    assert_eq!((failure.class(), failure.to_string().as_str()), ("NoSuchTable", "there is no table `t`"));
}
