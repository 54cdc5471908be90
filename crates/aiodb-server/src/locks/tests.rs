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

#[tokio::test]
async fn what_somebody_has_is_not_had_at_once_and_nothing_stays_of_the_attempt() {
    let locks = Locks::new();
    let (low, high) = (Claim::Stripes(vec![(3, true)]), Claim::Stripes(vec![(7, false)]));
    let both = Claim::Stripes(vec![(3, true), (7, true)]);
    assert!(locks.try_claim(&both).is_some());
    for held in [&low, &high, &Claim::Everything] {
        let held = locks.claim(held).await;
        assert!(locks.try_claim(&both).is_none());
        drop(held);
        // Of the first stripe nothing was kept.
        assert!(locks.try_claim(&both).is_some());
    }
    let held = locks.try_claim(&both).unwrap();
    assert!(locks.try_claim(&low).is_none() && locks.try_claim(&high).is_none());
    drop(held);
    let (first, second) = (locks.try_claim(&high), locks.try_claim(&high));
    assert!(first.is_some() && second.is_some(), "many may read");
}
