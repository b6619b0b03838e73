//! Tokens of service accounts: JSON web tokens, signed by the server that checks them.

use std::fmt;

use ring::hmac;
use ring::rand::SystemRandom;
use serde_json::{Value, json};

use crate::base64::{decode_url, encode_url};

/// What tokens are signed with. It is random, new for each server, and never told.
pub(crate) struct Keys(Option<hmac::Key>);

// === impl Keys ===

impl Keys {
    /// A new key. Where the system gives no random numbers no token is right.
    pub(crate) fn generate() -> Self {
        Self(hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok())
    }

    /// A token with these claims.
    pub(crate) fn sign(&self, claims: &Value) -> String {
        let part = |value: &Value| encode_url(value.to_string().as_bytes());
        let header = json!({ "alg": "HS256", "typ": "JWT" });
        let said = format!("{}.{}", part(&header), part(claims));
        let Some(key) = &self.0 else {
            return said;
        };
        let signature = hmac::sign(key, said.as_bytes());
        format!("{said}.{}", encode_url(signature.as_ref()))
    }

    /// The claims of a token, if this signed it.
    pub(crate) fn read(&self, token: &[u8]) -> Option<Value> {
        let token = str::from_utf8(token).ok()?;
        let (said, signature) = token.rsplit_once('.')?;
        let signature = decode_url(signature)?;
        hmac::verify(self.0.as_ref()?, said.as_bytes(), &signature).ok()?;
        let (_, claims) = said.split_once('.')?;
        serde_json::from_slice(&decode_url(claims)?).ok()
    }
}

/// The key is a secret.
impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Keys").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_signed_with_the_key_is_read() {
        let keys = Keys::generate();
        let claims = json!({ "sub": "a" });
        let token = keys.sign(&claims);
        assert_eq!(keys.read(token.as_bytes()), Some(claims));
        let parts: Vec<&str> = token.split('.').collect();
        let other = encode_url(json!({ "sub": "b" }).to_string().as_bytes());
        for wrong in [
            format!("{}.{other}.{}", parts[0], parts[2]),
            format!("{}.{}.", parts[0], parts[1]),
            format!("{}.{}", parts[0], parts[1]),
            format!("{token}A"),
            String::new(),
            "..".to_owned(),
        ] {
            assert_eq!(keys.read(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(Keys::generate().read(token.as_bytes()), None);
    }
}
