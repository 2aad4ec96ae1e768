//! Proofs of a password. Formulas: MySQL 8.0 Source Code Documentation, "Native Authentication" and "`Caching_sha2_password`
//! information".

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::dialect::Authentication;

impl Authentication {
    /// Name of the method in the protocol.
    pub(crate) fn plugin(self) -> &'static str {
        match self {
            Self::Native => "mysql_native_password",
            Self::CachingSha2 => "caching_sha2_password",
        }
    }

    /// Whether an answer to a scramble proves this password.
    pub(crate) fn proves(self, password: &str, scramble: &[u8; 20], answer: &[u8]) -> bool {
        if password.is_empty() {
            return answer.is_empty();
        }
        match self {
            Self::Native => native(password, scramble) == answer,
            Self::CachingSha2 => caching_sha2(password, scramble) == answer,
        }
    }
}

fn mixed(a: &[u8], b: &[u8]) -> Vec<u8> {
    a.iter().zip(b).map(|(a, b)| a ^ b).collect()
}

/// `SHA1(password) XOR SHA1(scramble + SHA1(SHA1(password)))`
fn native(password: &str, scramble: &[u8; 20]) -> Vec<u8> {
    let once = Sha1::digest(password.as_bytes());
    let twice = Sha1::digest(once);
    let seal = Sha1::new().chain_update(scramble).chain_update(twice).finalize();
    mixed(&once, &seal)
}

/// `SHA256(password) XOR SHA256(SHA256(SHA256(password)) + scramble)`
fn caching_sha2(password: &str, scramble: &[u8; 20]) -> Vec<u8> {
    let once = Sha256::digest(password.as_bytes());
    let twice = Sha256::digest(once);
    let seal = Sha256::new()
        .chain_update(twice)
        .chain_update(scramble)
        .finalize();
    mixed(&once, &seal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_fits_its_password_and_scramble_only() {
        let (scramble, other) = ([7; 20], [8; 20]);
        for method in [Authentication::Native, Authentication::CachingSha2] {
            let proof = match method {
                Authentication::Native => native("secret", &scramble),
                Authentication::CachingSha2 => caching_sha2("secret", &scramble),
            };
            assert!(method.proves("secret", &scramble, &proof));
            assert!(!method.proves("wrong", &scramble, &proof));
            assert!(!method.proves("secret", &other, &proof));
            assert!(!method.proves("secret", &scramble, &[]));
            assert!(method.proves("", &scramble, &[]));
        }
    }
}
