//! Signatures of requests according to Standard Webhooks 1.0.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::hmac;
use zeroize::Zeroizing;

/// Prefix of a base64 secret.
const PREFIX: &str = "whsec_";

/// Signs requests with one secret.
pub(super) struct Signer {
    key: hmac::Key,
}

impl Signer {
    /// A signer with a secret: `whsec_` and base64, or else the text's own bytes.
    ///
    /// # Errors
    /// What is wrong with the secret, without quoting it.
    pub(super) fn new(secret: &str) -> Result<Signer, &'static str> {
        let bytes = match secret.strip_prefix(PREFIX) {
            Some(encoded) => Zeroizing::new(
                BASE64.decode(encoded).map_err(|_| "begins with `whsec_` and is not base64")?,
            ),
            None => Zeroizing::new(secret.as_bytes().to_vec()),
        };
        if bytes.is_empty() {
            return Err("is empty");
        }
        Ok(Signer { key: hmac::Key::new(hmac::HMAC_SHA256, &bytes) })
    }

    /// Value of the header `webhook-signature`.
    pub(super) fn sign(&self, id: &[u8], timestamp: &str, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [id, b".", timestamp.as_bytes(), b".", body] {
            context.update(part);
        }
        let mut out = String::with_capacity(3 + 44);
        out.push_str("v1,");
        BASE64.encode_string(context.sign(), &mut out);
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's libraries; checked with Python, where `SIGNED` is
    /// `b"msg_p5jXN8AQM9LWM0D4loKWxJek.1614265330." + BODY`:
    /// `base64.b64encode(hmac.new(base64.b64decode(S), SIGNED, "sha256").digest())`.
    #[test]
    fn it_signs_as_the_reference_does() {
        let signer = Signer::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let id = b"msg_p5jXN8AQM9LWM0D4loKWxJek";
        let signature = signer.sign(id, "1614265330", br#"{"test": 2432232314}"#);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn a_secret_may_be_any_text() {
        let signer = Signer::new("a secret of bytes: \u{fc}").unwrap();
        let signature = signer.sign(b"sink-1-42", "1700000000", b"\x00\xff");
        assert_eq!(signature, RAW_EXPECTED);
    }

    const RAW_EXPECTED: &str = "v1,rvFNiRszSorLDeiAu1r3mTgNIgJwbKllTa8Znde9JXM=";

    #[test]
    fn what_is_no_secret_is_refused() {
        for bad in ["", "whsec_", "whsec_%%%"] {
            assert!(Signer::new(bad).is_err(), "{bad}");
        }
    }
}
