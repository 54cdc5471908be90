use super::Encoding;

fn decode(encoding: Encoding, written: &str) -> Result<Vec<u8>, String> {
    let mut bytes = b"kept ".to_vec();
    encoding.decode_to(written.as_bytes(), &mut bytes)?;
    Ok(bytes)
}

#[test]
fn every_encoding_gives_back_what_it_wrote() {
    let bytes: Vec<u8> = (0..=255).collect();
    for encoding in [Encoding::Hex, Encoding::Base64] {
        let (written, used) = encoding.encode(&bytes);
        assert_eq!(used, encoding);
        assert_eq!(decode(encoding, &written).unwrap(), [b"kept ", &bytes[..]].concat());
    }
    assert_eq!(Encoding::Text.encode("größe".as_bytes()), ("größe".to_string(), Encoding::Text));
    assert_eq!(decode(Encoding::Text, "größe").unwrap(), "kept größe".as_bytes());
}

#[test]
fn bytes_that_are_no_text_are_written_in_base64() {
    assert_eq!(Encoding::Text.encode(&[0xff, 0]), ("/wA=".to_string(), Encoding::Base64));
}

#[test]
fn what_is_not_in_the_encoding_is_refused() {
    assert!(decode(Encoding::Hex, "abc").unwrap_err().starts_with("not hex"));
    assert!(decode(Encoding::Hex, "zz").unwrap_err().starts_with("not hex"));
    assert!(decode(Encoding::Base64, "a").unwrap_err().starts_with("not base64"));
    assert!(decode(Encoding::Base64, "/wA").unwrap_err().starts_with("not base64"), "padding is part of it");
}
