//! Concurrent requests for the same link: one alias has one owner, one URL one deterministic link,
//! and no code is assigned twice.

use crate::client::{Answer, Client};
use crate::server::Server;
use crate::shortener::*;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Barrier;

const ROUNDS: usize = 400;

/// Has all clients send the same kind of request concurrently, in rounds. Returns the answers of
/// each round, in the order of the clients.
fn at_once(
    server: &Server,
    clients: usize,
    rounds: usize,
    request: impl Fn(&mut Client, usize, usize) -> Answer + Sync,
) -> Vec<Vec<Answer>> {
    let start = Barrier::new(clients);
    let of_clients: Vec<Vec<Answer>> = std::thread::scope(|scope| {
        let (start, request) = (&start, &request);
        let run = |number: usize| {
            let mut client = server.client();
            let mut round = |round: usize| {
                start.wait();
                request(&mut client, number, round)
            };
            (0..rounds).map(&mut round).collect()
        };
        let threads: Vec<_> = (0..clients).map(|number| scope.spawn(move || run(number))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    (0..rounds).map(|round| of_clients.iter().map(|all| all[round].clone()).collect()).collect()
}

fn target(client: usize, round: usize) -> String {
    format!("http://example.com/{round}/{client}")
}

/// Asserts that exactly one answer is a 201, the others refusals because the alias is taken;
/// returns the winner.
#[track_caller]
fn winner(answers: &[Answer]) -> usize {
    let won = |answer: &Answer| answer.status == 201;
    let winners: Vec<usize> = (0..answers.len()).filter(|&at| won(&answers[at])).collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    answers.iter().filter(|answer| !won(answer)).for_each(|answer| drop(refused(answer, TAKEN)));
    winners[0]
}

#[test]
fn of_two_clients_that_claim_one_alias_one_gets_it() {
    for lean in crate::server::BOTH_LOOPS {
        let server = Server::start_with(&lean);
        let alias = |round: usize| format!("alias{round}");
        let rounds = at_once(&server, 2, ROUNDS, |client, number, round| {
            let body = json!({"url": target(number, round), "alias": alias(round)});
            client.post("/api/urls", &body).unwrap()
        });
        let mut client = server.client();
        let mut won = [0; 2];
        for (round, answers) in rounds.iter().enumerate() {
            let winner = winner(answers);
            click(&mut client, &alias(round), &target(winner, round));
            won[winner] += 1;
        }
        assert!(won.iter().all(|&won| won > 0), "a race that one always wins is none: {won:?}");
        let listed = codes(&mut client, "limit=1000");
        assert_eq!(listed.len(), ROUNDS);
    }
}

#[test]
fn an_alias_in_a_bulk_and_by_itself_is_given_once() {
    let server = Server::start();
    let alias = |round: usize| format!("mixed{round}");
    let rounds = at_once(&server, 3, 60, |client, number, round| {
        let link = json!({"url": target(number, round), "alias": alias(round)});
        if number == 0 {
            let other = json!({"url": "http://example.com/before"});
            return bulk(client, &format!("{other}\n{link}\n"), &[]);
        }
        client.post("/api/urls", &link).unwrap()
    });
    let mut client = server.client();
    for (round, answers) in rounds.iter().enumerate() {
        click(&mut client, &alias(round), &target(winner(answers), round));
    }
    // The lines before the losing one took effect each time.
    assert_eq!(codes(&mut client, "limit=1000&search=/before").len(), 60);
}

#[test]
fn one_url_has_one_deterministic_link_however_many_ask_at_once() {
    let server = Server::start();
    let rounds = at_once(&server, 4, 100, |client, _, round| {
        let body = json!({"url": target(0, round), "deterministic": true});
        client.post("/api/urls", &body).unwrap()
    });
    for answers in rounds {
        let made = answers.iter().filter(|answer| answer.status == 201).count();
        let there = answers.iter().filter(|answer| answer.status == 200).count();
        assert_eq!((made, there), (1, 3), "{answers:?}");
        assert!(answers.iter().all(|answer| answer.body == answers[0].body), "{answers:?}");
    }
    assert_eq!(codes(&mut server.client(), "limit=1000").len(), 100);
}

#[test]
fn no_code_is_given_twice_whatever_aliases_stand_in_its_way() {
    let server = Server::start();
    // Automatic codes may also be aliases of three characters.
    let alphabet = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    let alias = |round: usize| -> String {
        let character = |n: usize| char::from(alphabet[n % alphabet.len()]);
        [7 * round, 3 * round + round / 62, round / 5].map(character).iter().collect()
    };
    let rounds = at_once(&server, 4, 300, |client, number, round| {
        let mut body = json!({"url": target(number, round)});
        if number == 3 {
            body["alias"] = Value::from(alias(round));
        }
        client.post("/api/urls", &body).unwrap()
    });
    let mut given = HashSet::new();
    let mut client = server.client();
    for (round, answers) in rounds.iter().enumerate() {
        for (number, answer) in answers.iter().enumerate() {
            if number == 3 && answer.status == 409 {
                refused(answer, TAKEN);
                continue;
            }
            let code = code_of(&answer.expect(201));
            assert!(given.insert(code.clone()), "{code} is given twice");
            click(&mut client, &code, &target(number, round));
        }
    }
    assert!(given.len() >= 900);
    let listed: HashSet<String> = codes(&mut client, "limit=1000").into_iter().collect();
    assert_eq!(listed, given);
}

#[test]
fn a_link_deleted_while_others_change_it_stays_deleted() {
    let server = Server::start();
    for round in 0..60 {
        let code = shorten(&mut server.client(), &target(0, round));
        let rounds = at_once(&server, 3, 1, |client, number, _| match number {
            0 => delete(client, &code),
            _ => send_change(client, &code, &json!({"url": target(number, round)})),
        });
        assert_eq!(rounds[0][0].status, 204);
        for answer in &rounds[0][1..] {
            assert!(answer.status == 200 || answer.status == 410, "{answer:?}");
        }
        refused(&follow(&mut server.client(), &code).unwrap(), DELETED);
    }
    assert_eq!(codes(&mut server.client(), ""), [""; 0]);
}
