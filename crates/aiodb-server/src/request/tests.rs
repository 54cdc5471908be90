use super::*;

/// All requests of some bytes that come in pieces of this length.
fn read(bytes: &[u8], piece: usize, known: bool) -> Result<Vec<Request>, Fault> {
    let (mut decoder, mut buffer, mut requests) = (Decoder::default(), BytesMut::new(), Vec::new());
    for piece in bytes.chunks(piece) {
        buffer.extend_from_slice(piece);
        while let Some(request) = decoder.next(&mut buffer, known)? {
            requests.push(request);
        }
    }
    Ok(requests)
}

fn fault_of(bytes: &[u8], known: bool) -> String {
    match read(bytes, bytes.len(), known) {
        Err(Fault::Protocol(text)) => String::from_utf8_lossy(&text).into_owned(),
        other => panic!("{other:?} of {bytes:?}"),
    }
}

#[test]
fn requests_come_in_pieces_of_any_length() {
    let bytes =
        b"*2\r\n$3\r\nGET\r\n$0\r\n\r\n\r\n*0\r\n*-5\r\nset a \"b\\x41\\n\"\r\nget 'it\\'s'\n*1\r\n$4\r\nPI\r\n\r\n";
    let expected: [&[&[u8]]; 4] = [&[b"GET", b""], &[b"set", b"a", b"bA\n"], &[b"get", b"it's"], &[b"PI\r\n"]];
    for piece in 1..=bytes.len() {
        let requests = read(bytes, piece, true).unwrap();
        assert_eq!(requests, expected, "in pieces of {piece}");
    }
}

#[test]
fn faults_have_the_words_of_redis() {
    for (bytes, expected) in [
        (&b"*x\r\n"[..], "invalid multibulk length"),
        (b"*2147483648\r\n", "invalid multibulk length"),
        (b"*1\r\nPING\r\n", "expected '$', got 'P'"),
        (b"*1\r\n$-1\r\n", "invalid bulk length"),
        (b"*1\r\n$536870913\r\n", "invalid bulk length"),
        (b"*1\r\n$+1\r\n", "invalid bulk length"),
        (b"get \"a\r\n", "unbalanced quotes in request"),
        (b"get \"a\"b\r\n", "unbalanced quotes in request"),
    ] {
        assert_eq!(fault_of(bytes, true), expected);
    }
    assert_eq!(fault_of(b"*11\r\n", false), "unauthenticated multibulk length");
    assert_eq!(fault_of(b"*1\r\n$16385\r\n", false), "unauthenticated bulk length");
    let long = vec![b'1'; MAX_LINE_BYTES + 2];
    assert_eq!(fault_of(&long, true), "too big inline request");
    assert_eq!(fault_of(&[b"*", &long[..]].concat(), true), "too big mbulk count string");
    assert_eq!(fault_of(&[b"*1\r\n$", &long[..]].concat(), true), "too big bulk count string");
}

#[test]
fn nothing_is_kept_for_what_is_only_announced() {
    let mut decoder = Decoder::default();
    let mut buffer = BytesMut::from(&b"*2147483647\r\n$536870912\r\nx"[..]);
    assert_eq!(decoder.next(&mut buffer, true), Ok(None));
    assert!(decoder.arguments.capacity() == 0 && buffer.capacity() < 1000);
    assert!(!decoder.is_between_requests());
}

#[test]
fn any_bytes_are_read_or_refused() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let parts: [&[u8]; 16] = [
        b"*",
        b"$",
        b"\r\n",
        b"\r",
        b"\n",
        b"1",
        b"2",
        b"-1",
        b"0",
        b"\"",
        b"'",
        b"\\",
        b" ",
        b"GET",
        b"\xff\0",
        b"99999999999",
    ];
    for _ in 0..20_000 {
        let bytes: Vec<u8> = (0..random.usize(..20)).flat_map(|_| random.choice(parts).unwrap().to_vec()).collect();
        let whole = read(&bytes, bytes.len().max(1), true);
        let pieces = read(&bytes, 1, true);
        assert_eq!(whole, pieces, "{bytes:?}");
    }
}
