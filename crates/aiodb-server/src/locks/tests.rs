use super::*;

fn key(name: &'static str) -> Key {
    Key { database: 0, name: name.into() }
}

#[test]
fn a_stripe_is_claimed_once_and_in_order() {
    let keys = ["a", "b", "a", "c"].map(key);
    let written = [false, false, true, false];
    let Claim::Stripes(stripes) = Claim::on_keys(keys.iter().zip(written)) else { panic!("there are keys") };
    assert_eq!(stripes.len(), 3);
    assert!(stripes.is_sorted() && stripes.contains(&(key("a").stripe(), true)));
    assert_eq!(Claim::on_keys(std::iter::empty()), Claim::Nothing);
}

#[tokio::test]
async fn a_writer_is_alone() {
    let locks = Locks::new();
    let (read, written) = (Claim::Stripes(vec![(7, false)]), Claim::Stripes(vec![(7, true)]));
    let both = (locks.claim(&read).await, locks.claim(&read).await);
    let mut writer = Box::pin(locks.claim(&written));
    assert!(futures::poll!(&mut writer).is_pending());
    drop(both);
    let held = writer.await;
    assert!(futures::poll!(Box::pin(locks.claim(&read))).is_pending());
    assert!(futures::poll!(Box::pin(locks.claim(&Claim::Everything))).is_pending());
    drop(held);
    locks.claim(&Claim::Everything).await;
}
