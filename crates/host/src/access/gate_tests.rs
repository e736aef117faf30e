//! The gate alone: threads, time, concurrency.

use super::*;
use crate::access::password;
use crate::access::view::Command;
use crate::config::HostConfig;
use crate::identity::Grant;
use crate::node::Node;
use crate::wire::effects::Effects;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::sync::atomic::AtomicU64;
use tempfile::TempDir;
use wellspring_log::CommitOn;

const PASSWORD: &str = "correct horse";

/// A clock that stands still until set.
#[derive(Default)]
struct ManualClock(AtomicU64);

impl Clock for ManualClock {
    fn wall_us(&self) -> u64 {
        1_795_224_656_000_000 + self.monotonic_us()
    }
    fn monotonic_us(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

struct GateWithAccounts {
    gate: Gate,
    clock: Arc<ManualClock>,
    _node: Node,
    _dir: TempDir,
}

/// A gate with two admins, `ann` and `bob`.
async fn closed() -> GateWithAccounts {
    let dir = TempDir::new().unwrap();
    let config = HostConfig::for_tests(&["--data", dir.path().to_str().unwrap(), "--threads", "2"]);
    let clock = Arc::new(ManualClock::default());
    let node = config.node(clock.clone());
    let gate = config.gate(clock.clone(), &node);
    assert!(gate.is_open());
    let closed = GateWithAccounts { gate, clock, _node: node, _dir: dir };
    let password = password::hash(PASSWORD).unwrap();
    for name in ["ann", "bob"] {
        let roles = Grant::everywhere(Role::Admin).into();
        let name = AccountName::parse(name).unwrap();
        closed.execute(Command::AddAccount { name, password: Some(password.clone()), roles }).await;
    }
    assert!(!closed.gate.is_open());
    closed
}

impl GateWithAccounts {
    async fn execute(&self, command: Command) {
        let executed = self
            .gate
            .live()
            .execute(&Effects::default(), &[command], None, CommitOn::ThisThread)
            .await;
        assert!(executed.unwrap().refused.is_none());
    }

    async fn ask(&self, credentials: &str) -> u16 {
        let mut headers = HeaderMap::new();
        headers.insert(AUTHORIZATION, credentials.parse().unwrap());
        let needs = Needs::Role(Role::Admin);
        let admitted = self
            .gate
            .admit(asking(&Uri::from_static("/v1/head"), &headers), needs, Some("main"))
            .await;
        admitted.map_or_else(|problem| problem.kind.status, |_| 200)
    }

    async fn token(&self, life_s: u64) -> String {
        let logged_in = self.gate.login("ann", PASSWORD.to_owned().into(), None).await.unwrap();
        let issued = self.gate.issue(&logged_in, &logged_in.grants, life_s).unwrap();
        format!("Bearer {}", *issued.token)
    }

    fn pass(&self, credentials: &str) -> Option<Pass> {
        self.gate.pass(Some(credentials.as_bytes()), None, Role::Writer, Some("main"))
    }

    fn later(&self, seconds: u64) {
        self.clock.0.fetch_add(seconds * 1_000_000, Ordering::Relaxed);
    }
}

fn asking<'a>(uri: &'a Uri, headers: &'a HeaderMap) -> GateRequest<'a> {
    GateRequest { uri, headers, client: None, of_node: None }
}

fn basic(text: &str) -> String {
    format!("Basic {}", STANDARD.encode(text))
}

#[tokio::test]
async fn the_same_password_at_once_is_verified_once() {
    let closed = closed().await;
    let wrong = basic("ann:wrong");
    let many: Vec<_> = (0..100).map(|_| closed.ask(&wrong)).collect();
    let mut told = Vec::new();
    for status in futures_in_turn(many).await {
        told.push(status);
    }
    // If each were counted, all but a few would be told to retry later.
    assert_eq!(told, vec![401; 100]);
    assert_eq!(closed.ask(&basic(&format!("ann:{PASSWORD}"))).await, 200);
    assert!(lock(&closed.gate.flights).is_empty());
}

/// Polls all of them until done.
async fn futures_in_turn<F: Future<Output = u16>>(futures: Vec<F>) -> Vec<u16> {
    let mut futures: Vec<_> = futures.into_iter().map(Box::pin).collect();
    let mut done: Vec<Option<u16>> = vec![None; futures.len()];
    std::future::poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let std::task::Poll::Ready(status) = future.as_mut().poll(context)
            {
                *done = Some(status);
            }
        }
        let all = done.iter().all(Option::is_some);
        if all { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[tokio::test]
async fn a_client_that_leaves_during_verification_is_forgotten() {
    let closed = closed().await;
    for _ in 0..3 {
        let right = basic(&format!("ann:{PASSWORD}"));
        let gone = tokio::time::timeout(std::time::Duration::from_millis(1), closed.ask(&right));
        assert!(gone.await.is_err(), "a verification takes longer");
        assert!(lock(&closed.gate.flights).is_empty());
    }
    assert_eq!(closed.ask(&basic(&format!("bob:{PASSWORD}"))).await, 200);
}

#[tokio::test]
async fn what_is_revoked_has_fallen_with_the_next_request_on_every_thread() {
    let closed = closed().await;
    let token = closed.token(600).await;
    let right = basic(&format!("ann:{PASSWORD}"));
    let mut passes = Vec::new();
    for thread in 0..4 {
        stats::enter_thread(thread);
        assert_eq!((closed.ask(&token).await, closed.ask(&right).await), (200, 200));
        passes.push(closed.pass(&token).unwrap());
    }
    assert!(passes.iter().all(|pass| closed.gate.holds(pass)));
    closed.execute(Command::RevokeAllTokens { name: AccountName::parse("ann").unwrap() }).await;
    for (thread, pass) in passes.iter().enumerate() {
        stats::enter_thread(thread);
        assert!(!closed.gate.holds(pass));
        assert!(closed.pass(&token).is_none());
        assert_eq!(closed.ask(&token).await, 401);
        assert_eq!(closed.ask(&right).await, 200, "a password is not a token");
    }
    closed.execute(Command::Disable { name: AccountName::parse("ann").unwrap() }).await;
    assert_eq!(closed.ask(&right).await, 401);
}

#[tokio::test]
async fn a_token_and_its_passes_end_in_time() {
    let closed = closed().await;
    let token = closed.token(600).await;
    let pass = closed.pass(&token).unwrap();
    closed.later(629);
    assert!(closed.gate.holds(&pass));
    assert_eq!(closed.ask(&token).await, 200);
    closed.later(2);
    assert!(!closed.gate.holds(&pass));
    assert!(closed.pass(&token).is_none());
    assert_eq!(closed.ask(&token).await, 401);
}

#[tokio::test]
async fn a_password_gives_no_pass_until_it_has_been_verified() {
    let closed = closed().await;
    let right = basic(&format!("ann:{PASSWORD}"));
    assert!(closed.pass(&right).is_none());
    assert_eq!(closed.ask(&right).await, 200);
    assert!(closed.pass(&right).is_some(), "on the same thread");
    stats::enter_thread(3);
    assert!(closed.pass(&right).is_none());
}

#[tokio::test]
async fn a_pass_from_before_there_were_accounts_does_not_hold() {
    let dir = TempDir::new().unwrap();
    let config = HostConfig::for_tests(&["--data", dir.path().to_str().unwrap()]);
    let clock: Arc<dyn Clock> = Arc::new(ManualClock::default());
    let node = config.node(clock.clone());
    let gate = config.gate(clock, &node);
    let pass = gate.pass(None, None, Role::Writer, None).unwrap();
    assert!(gate.holds(&pass));
    let (name, roles) = (AccountName::parse("ann").unwrap(), Grant::everywhere(Role::Admin).into());
    let password = crate::access::view::PasswordHash::new("$x");
    let add = Command::AddAccount { name, password, roles };
    gate.live().execute(&Effects::default(), &[add], None, CommitOn::ThisThread).await.unwrap();
    assert!(!gate.holds(&pass));
    assert!(gate.pass(None, None, Role::Writer, None).is_none());
}

#[tokio::test]
async fn wrong_passwords_are_slowed_and_the_wait_is_said() {
    let closed = closed().await;
    let statuses = async |name: &str| {
        let mut told = Vec::new();
        for n in 0..8 {
            told.push(closed.ask(&basic(&format!("{name}:wrong{n}"))).await);
        }
        told
    };
    let told = statuses("ann").await;
    assert_eq!(told, [401, 401, 401, 401, 401, 429, 429, 429]);
    assert_eq!(statuses("nobody").await, told, "as for who is not there");
    let mut headers = HeaderMap::new();
    headers.insert(AUTHORIZATION, basic("ann:x").parse().unwrap());
    let refused = closed
        .gate
        .admit(asking(&Uri::from_static("/auth/me"), &headers), Needs::Account, None)
        .await
        .unwrap_err();
    assert_eq!(refused.retry_after_s(), Some(1));
    // A token keeps working, and after the wait so does the password.
    closed.later(1);
    assert_eq!(closed.ask(&basic(&format!("ann:{PASSWORD}"))).await, 200);
}

#[tokio::test]
async fn many_passwords_at_once_are_as_few_as_in_a_row() {
    let closed = closed().await;
    let wrong: Vec<String> = (0..100).map(|n| basic(&format!("ann:wrong{n}"))).collect();
    let many: Vec<_> = wrong.iter().map(|wrong| closed.ask(wrong)).collect();
    let told = futures_in_turn(many).await;
    assert_eq!(told.iter().filter(|status| **status == 401).count(), 5, "{told:?}");
    assert_eq!(told.iter().filter(|status| **status == 429).count(), 95, "{told:?}");
    // Any number of concurrent logins with the right password are one attempt.
    let right = || async {
        let logged_in = closed.gate.login("bob", PASSWORD.to_owned().into(), None).await;
        logged_in.map_or_else(|problem| problem.kind.status, |_| 200)
    };
    assert_eq!(futures_in_turn((0..100).map(|_| right()).collect()).await, vec![200; 100]);
    assert!(lock(&closed.gate.flights).is_empty());
}
