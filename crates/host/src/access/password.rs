//! Passwords: Argon2id (RFC 9106) with the minimum parameters of OWASP's Password Storage Cheat
//! Sheet: 19 MiB, two passes, one lane. Stored in PHC format.
//!
//! A verification deliberately takes tens of milliseconds of CPU time and 19 MiB; so few run at
//! once, few wait, and the rest are told to retry.

use crate::access::view::PasswordHash;
use crate::random;
use argon2::password_hash::{PasswordHash as Phc, PasswordHasher, PasswordVerifier, SaltString};
use argon2::{ARGON2ID_IDENT, Algorithm, Argon2, Params, Version};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::Semaphore;
use zeroize::Zeroizing;

/// Shortest new password, in bytes.
pub(crate) const MIN_BYTES: usize = 8;
/// Longest password, in bytes.
pub const MAX_BYTES: usize = 1_024;
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// Upper bounds for the parameters of a stored hash. Otherwise a writer of events could exhaust the
/// memory.
const MOST_MEMORY_KIB: u32 = 262_144;
const MOST_PASSES: u32 = 16;
const MOST_LANES: u32 = 16;
/// A dummy hash, verified when there is none to verify, so that it takes as long. No password for
/// it is known, and knowing one would be of no use.
const NOBODYS: &str = "$argon2id$v=19$m=19456,t=2,p=1$d2VsbHNwcmluZ25vYm9keQ$\
                       AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";

/// Why a password is not acceptable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PasswordFault {
    /// Fewer than `MIN_BYTES`.
    TooShort,
    /// More than [`MAX_BYTES`].
    TooLong,
    /// It contains a control character, which Basic cannot carry.
    Control,
}

impl fmt::Display for PasswordFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PasswordFault::TooShort => write!(f, "a password needs at least {MIN_BYTES} bytes"),
            PasswordFault::TooLong => write!(f, "a password may have at most {MAX_BYTES} bytes"),
            PasswordFault::Control => f.write_str("a password must not contain control characters"),
        }
    }
}

impl std::error::Error for PasswordFault {}

/// The result of verifying a password.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PasswordVerdict {
    /// The account's password.
    Right,
    /// The account's password, but hashed with outdated parameters: rehash it.
    RightButWeak,
    /// Not the account's, or the account does not exist.
    Wrong,
}

fn argon2() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("parameters in their ranges");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Checks a new password.
///
/// # Errors
/// Why not.
pub fn check(password: &str) -> Result<(), PasswordFault> {
    match password.len() {
        ..MIN_BYTES => Err(PasswordFault::TooShort),
        MIN_BYTES..=MAX_BYTES if password.chars().any(char::is_control) => {
            Err(PasswordFault::Control)
        }
        MIN_BYTES..=MAX_BYTES => Ok(()),
        _ => Err(PasswordFault::TooLong),
    }
}

/// The hash of a [`check`]ed password. Takes as long as a verification.
///
/// # Errors
/// The system provides no random bytes or no memory.
pub fn hash(password: &str) -> io::Result<PasswordHash> {
    let salt = SaltString::encode_b64(&random::bytes::<16>()?).map_err(failed)?;
    let hash = argon2().hash_password(password.as_bytes(), &salt).map_err(failed)?;
    PasswordHash::new(&hash.to_string()).ok_or_else(|| io::Error::other("not in PHC format"))
}

/// Without its feature `std`, which pulls in more, the errors of `argon2` do not implement
/// `std::error::Error`.
fn failed(error: argon2::password_hash::Error) -> io::Error {
    io::Error::other(error.to_string())
}

/// Verifies a password. Without a hash (the account does not exist, or has no password) it takes as
/// long and fails.
pub(crate) fn verify(kept: Option<&PasswordHash>, password: &str) -> PasswordVerdict {
    // The same work for passwords that are too long, regardless of their length.
    let (password, kept) = if password.len() > MAX_BYTES { ("", None) } else { (password, kept) };
    let usable = kept.and_then(|kept| usable(kept.as_str()));
    if kept.is_some() && usable.is_none() {
        tracing::error!("the hash of a password cannot be used; set the password again");
    }
    let is_known = usable.is_some();
    let Some((phc, params)) = usable.or_else(|| self::usable(NOBODYS)) else {
        return PasswordVerdict::Wrong;
    };
    // Compares in constant time.
    let right = argon2().verify_password(password.as_bytes(), &phc).is_ok();
    let weak = params.m_cost() < MEMORY_KIB || params.t_cost() < PASSES;
    match (right && is_known, weak) {
        (true, false) => PasswordVerdict::Right,
        (true, true) => PasswordVerdict::RightButWeak,
        (false, _) => PasswordVerdict::Wrong,
    }
}

/// A hash whose verification is affordable.
fn usable(text: &str) -> Option<(Phc<'_>, Params)> {
    let phc = Phc::new(text).ok().filter(|phc| phc.algorithm == ARGON2ID_IDENT)?;
    let params = Params::try_from(&phc).ok()?;
    let bounded = params.m_cost() <= MOST_MEMORY_KIB
        && params.t_cost() <= MOST_PASSES
        && params.p_cost() <= MOST_LANES;
    // A truncated hash would match more passwords.
    let whole = phc.hash.is_some_and(|hash| hash.len() >= 16) && phc.salt.is_some();
    (bounded && whole).then_some((phc, params))
}

/// Too many verifications are waiting: retry in a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Busy;

/// Verifies passwords: a bounded number at once, on the runtime's blocking threads.
#[derive(Debug)]
pub struct Passwords {
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
    most_waiting: usize,
}

/// Counts one waiting login until dropped.
struct WaitingLogin<'a>(&'a AtomicUsize);

impl Drop for WaitingLogin<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Passwords {
    /// At most `most_running` run at once (half of the cores, for example), and `most_waiting`
    /// wait.
    pub(crate) fn new(most_running: usize, most_waiting: usize) -> Passwords {
        let running = Arc::new(Semaphore::new(most_running.max(1)));
        Passwords { running, waiting: AtomicUsize::new(0), most_waiting }
    }

    /// [`verify`]s in turn. A client that disconnects frees its place in the queue.
    ///
    /// # Errors
    /// [`Busy`].
    pub(crate) async fn verify(
        &self,
        kept: Option<PasswordHash>,
        password: Zeroizing<String>,
    ) -> Result<PasswordVerdict, Busy> {
        self.run(move || verify(kept.as_ref(), &password)).await
    }

    /// [`hash`]es in turn.
    ///
    /// # Errors
    /// [`Busy`]; those of [`hash`].
    pub async fn hash(
        &self,
        password: Zeroizing<String>,
    ) -> Result<io::Result<PasswordHash>, Busy> {
        self.run(move || hash(&password)).await
    }

    async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Busy> {
        let running = Arc::clone(&self.running);
        let permit = match Arc::clone(&running).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) => {
                let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
                let _waiting = WaitingLogin(&self.waiting);
                if waiting >= self.most_waiting {
                    return Err(Busy);
                }
                running.acquire_owned().await.map_err(|_| Busy)?
            }
        };
        // The permit moves with the work: a running verification counts even if its client has
        // gone.
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            work()
        });
        done.await.map_err(|_| Busy)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::disallowed_methods)]
    use super::*;
    use std::time::Instant;

    fn kept(text: &str) -> PasswordHash {
        PasswordHash::new(text).unwrap()
    }

    #[test]
    fn the_right_one_is_right_and_others_are_not() {
        let hash = hash("correct horse").unwrap();
        assert!(hash.as_str().starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "as OWASP says");
        assert_ne!(super::hash("correct horse").unwrap(), hash, "a salt of its own");
        assert_eq!(verify(Some(&hash), "correct horse"), PasswordVerdict::Right);
        for wrong in ["", "correct hors", "correct horse ", "Correct horse"] {
            assert_eq!(verify(Some(&hash), wrong), PasswordVerdict::Wrong);
        }
        assert_eq!(verify(Some(&hash), &"x".repeat(MAX_BYTES + 1)), PasswordVerdict::Wrong);
        assert_eq!(verify(None, "correct horse"), PasswordVerdict::Wrong);
        assert_eq!(verify(None, ""), PasswordVerdict::Wrong);
    }

    #[test]
    fn weak_hashes_are_told_and_those_that_cost_too_much_are_not_tried() {
        let salt = SaltString::encode_b64(b"0123456789abcdef").unwrap();
        let of = |memory, passes| {
            let params = Params::new(memory, passes, 1, None).unwrap();
            let weak = Argon2::new(Algorithm::Argon2id, Version::V0x13, params);
            kept(&weak.hash_password(b"password", &salt).unwrap().to_string())
        };
        assert_eq!(verify(Some(&of(64, 1)), "password"), PasswordVerdict::RightButWeak);
        assert_eq!(verify(Some(&of(64, 1)), "passwort"), PasswordVerdict::Wrong);
        let text = of(64, 1).as_str().to_owned();
        let start = Instant::now();
        for bad in [
            text.replace("m=64", "m=4194304000"),
            text.replace("t=1", "t=4000000000"),
            text.replace("argon2id", "argon2i"),
            text.replace("argon2id", "scrypt"),
            text.rsplit_once('$').unwrap().0.to_owned(),
            "$".to_owned(),
        ] {
            assert_eq!(verify(Some(&kept(&bad)), "password"), PasswordVerdict::Wrong, "{bad}");
        }
        assert!(start.elapsed().as_secs() < 60);
    }

    #[test]
    fn verifying_for_an_unknown_account_costs_as_much_as_for_a_known_one() {
        let (phc, nobodys) = usable(NOBODYS).unwrap();
        let hash = hash("password").unwrap();
        let (other, params) = usable(hash.as_str()).unwrap();
        assert_eq!(nobodys, params);
        assert_eq!(phc.salt.unwrap().as_str().len(), other.salt.unwrap().as_str().len());
        assert_eq!(phc.hash.unwrap().len(), other.hash.unwrap().len());
    }

    #[test]
    fn new_passwords_have_rules() {
        assert_eq!(check("password"), Ok(()));
        assert_eq!(check("passwor"), Err(PasswordFault::TooShort));
        assert_eq!(check(&"x".repeat(MAX_BYTES)), Ok(()));
        assert_eq!(check(&"x".repeat(MAX_BYTES + 1)), Err(PasswordFault::TooLong));
        assert_eq!(check("pass\nword"), Err(PasswordFault::Control));
    }

    #[tokio::test]
    async fn few_run_few_wait_and_the_rest_is_told() {
        let passwords = Passwords::new(1, 2);
        let held = Arc::clone(&passwords.running).try_acquire_owned().unwrap();
        let password = || Zeroizing::new("password".to_owned());
        let (first, second) =
            (passwords.verify(None, password()), passwords.verify(None, password()));
        let (mut first, mut second) = (Box::pin(first), Box::pin(second));
        tokio::select! {
            biased;
            _ = &mut first => panic!("nothing may run"),
            _ = &mut second => panic!("nothing may run"),
            () = tokio::task::yield_now() => {}
        }
        assert_eq!(passwords.verify(None, password()).await, Err(Busy));
        drop(second);
        assert_eq!(passwords.waiting.load(Ordering::Relaxed), 1, "who goes away waits no more");
        drop(held);
        assert_eq!(first.await, Ok(PasswordVerdict::Wrong));
        assert_eq!(passwords.verify(None, password()).await, Ok(PasswordVerdict::Wrong));
    }

    #[test]
    #[ignore = "a measurement: run it with --release --ignored on a quiet machine"]
    fn what_a_verification_costs() {
        let hash = hash("password").unwrap();
        // In turns, so that other load on the machine affects both.
        let mut us = [0; 2];
        for turn in 0..40 {
            let kept = (turn % 2 == 0).then_some(&hash);
            let start = Instant::now();
            assert_eq!(verify(kept, "passwort"), PasswordVerdict::Wrong);
            us[turn % 2] += start.elapsed().as_micros() / 20;
        }
        println!("known: {} us, unknown: {} us", us[0], us[1]);
    }
}
