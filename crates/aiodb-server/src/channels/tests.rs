use super::*;
use crate::acl::{Rules, User};
use crate::client::Clients;

fn client(clients: &Clients) -> Arc<Client> {
    let address = "127.0.0.1:1".parse().unwrap();
    let user = User::new("someone".into(), Rules::default());
    clients.add(address, address, 0, &user, usize::MAX).unwrap()
}

fn bytes(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn each_subscription_gets_a_message_once() {
    let (clients, channels) = (Clients::default(), Channels::default());
    let (first, second) = (client(&clients), client(&clients));
    let (mut ones, mut twos) = (Subscriptions::default(), Subscriptions::default());
    ones.add(&channels, &first, Topic::Channel, &bytes("news"));
    ones.add(&channels, &first, Topic::Channel, &bytes("news"));
    ones.add(&channels, &first, Topic::Pattern, &bytes("n*"));
    twos.add(&channels, &second, Topic::Pattern, &bytes("*s"));
    assert_eq!((ones.count(), twos.count()), (2, 1));
    assert_eq!((channels.receivers(b"news"), channels.receivers(b"no"), channels.receivers(b"x")), (3, 1, 0));
    channels.publish(vec![(bytes("news"), bytes("a")), (bytes("no"), bytes("b"))], None);
    assert_eq!(ones.inbox().unwrap().take(usize::MAX).len(), 3);
    let inbox = Arc::clone(twos.inbox().unwrap());
    assert_eq!(inbox.take(usize::MAX).len(), 1);
    // What comes before a subscription ends is not lost, and nothing comes after it.
    channels.publish(vec![(bytes("news"), bytes("c"))], None);
    twos.remove(&channels, &second, Topic::Pattern, &bytes("*s"));
    channels.publish(vec![(bytes("news"), bytes("d"))], None);
    assert_eq!(twos.early.len(), 1);
    assert!(twos.inbox().is_none() && inbox.take(usize::MAX).is_empty());
    ones.end(&channels, &first);
    assert_eq!((channels.different(Topic::Channel), channels.different(Topic::Pattern)), (0, 0));
    assert!(!first.listens() && !second.listens());
}

#[test]
fn what_waits_for_a_client_is_bounded() {
    let (clients, channels) = (Clients::default(), Channels::default());
    let (slow, quick) = (client(&clients), client(&clients));
    let (mut slows, mut quicks) = (Subscriptions::default(), Subscriptions::default());
    slows.add(&channels, &slow, Topic::Channel, &bytes("news"));
    quicks.add(&channels, &quick, Topic::Channel, &bytes("news"));
    let payload = Bytes::from(vec![0; 1 << 20]);
    for _ in 0..100 {
        channels.publish(vec![(bytes("news"), payload.clone())], None);
        let inbox = quicks.inbox().unwrap();
        // At least one message is taken, however long it is.
        assert_eq!(inbox.next(), (1, None));
        assert_eq!(inbox.take(1).len(), 1);
    }
    assert!(slow.is_killed() && !quick.is_killed());
    assert!(slows.inbox().unwrap().take(usize::MAX).is_empty());
    assert_eq!(slow.shown.message_bytes.load(Ordering::Relaxed), 0);
}
