//! Arbitrary bytes as the start of a Bolt connection: the same agreement whether they come at once
//! or one by one, on a version that is served, and a few bytes of answer.
use wellspring_bolt::{Agreement, Handshake, HandshakeFault, Version};

type Shaken = (Result<Option<Agreement>, HandshakeFault>, Vec<u8>);

/// The handshake over these lengths of the input.
fn shake(bytes: &[u8], lengths: impl Iterator<Item = usize>) -> Shaken {
    let (mut handshake, mut output) = (Handshake::default(), Vec::new());
    for length in lengths {
        match handshake.advance(&bytes[..length], &mut output) {
            Ok(None) => {}
            ended => return (ended, output),
        }
    }
    (Ok(None), output)
}

pub fn run(bytes: &[u8]) {
    let whole = shake(bytes, std::iter::once(bytes.len()));
    let singly = shake(bytes, 0..=bytes.len());
    // Faults within the first four bytes are seen as early as they come.
    assert_eq!(whole, singly);
    let (result, output) = whole;
    assert!(output.len() <= 18);
    if let Ok(Some(Agreement { version, used })) = result {
        assert!(Version::all().any(|served| served == version));
        assert!((20..=34).contains(&used) && used <= bytes.len());
    }
}
