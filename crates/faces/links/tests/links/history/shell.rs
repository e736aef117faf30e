//! Executes a command: decides on the staged state, stages, appends under the condition, settles.

use super::*;

impl World {
    pub(crate) fn execute(&mut self, command: &Command, fate: Fate) {
        for attempt in 0..ATTEMPTS {
            self.sweep();
            let context = Context { key: self.next_key(), reserved, targets: Default::default() };
            let decision = match Links::decide(self.live.folded(), &self.staged, &context, command)
            {
                Ok(decision) => decision,
                Err(refusal) => {
                    if self.open.is_empty() && self.folded == self.journal.head() {
                        return self.check_refusal(command, &refusal);
                    }
                    self.see_all();
                    continue;
                }
            };
            if decision.events.is_empty() {
                if self.open.is_empty() && self.folded == self.journal.head() {
                    return self.check_nothing(command, decision.outcome);
                }
                self.see_all();
                continue;
            }
            assert!(!decision.unless.is_empty(), "events come with a condition");
            let items = decision.unless.clone();
            let condition = AppendCondition::no_match_after(Query { items }, self.folded);
            let ticket = self.next_ticket;
            self.next_ticket += 1;
            Links::stage(&mut self.staged, &decision, ticket);
            if fate == Fate::Overtaken && attempt == 0 {
                self.overtake(&decision);
                let conflict = self.journal.conflict(&condition);
                assert!(conflict.is_some(), "nobody noticed who came before {decision:?}");
            }
            if fate == Fate::Lost {
                self.never_were.extend(created(&decision.outcome));
                return self.open.push((ticket, None));
            }
            match self.journal.conflict(&condition) {
                Some(position) => {
                    self.never_were.extend(created(&decision.outcome));
                    self.open.push((ticket, None));
                    self.fold(position);
                    if attempt > ATTEMPTS / 2 {
                        // A command without effect may be answered before one with an effect.
                        self.see_all();
                    }
                }
                None => return self.append_own(command, decision, ticket),
            }
        }
        panic!("{command:?} is blocked");
    }

    /// Each process has its own key, used if links are not opened yet.
    fn next_key(&self) -> Key {
        u128::from(mixed(self.next_ticket / 8)).to_le_bytes()
    }

    fn see_all(&mut self) {
        self.fold(self.journal.head());
        self.sweep();
    }

    /// Settles tickets that are folded or lost.
    pub(super) fn sweep(&mut self) {
        let World { open, staged, folded, .. } = self;
        open.retain(|&(ticket, last)| {
            let stays = last.is_some_and(|last| last > *folded);
            if !stays {
                Links::settle(staged, ticket);
            }
            stays
        });
    }

    fn append_own(&mut self, command: &Command, decision: Decision<LinkOutcome>, ticket: Ticket) {
        self.check_before(command, &decision);
        let mut last = 0;
        for event in decision.events {
            if event.event_type == "LinkCreated" {
                let data: Value = serde_json::from_slice(&event.data).expect("JSON");
                if let Some(number) = data.get("number").and_then(Value::as_u64) {
                    assert!(self.numbers.insert(number), "{number} twice");
                    self.counted = self.counted.max(number + 1);
                }
            }
            last = self.append(event);
        }
        self.open.push((ticket, Some(last)));
        self.check_after(command, decision.outcome);
    }

    fn check_before(&self, command: &Command, decision: &Decision<LinkOutcome>) {
        match decision.outcome {
            LinkOutcome::Created(code) => {
                assert!(self.oracle.link(code).is_none(), "{code} is given again");
                assert!(!reserved(&code.as_text()), "{code} is reserved");
                if let Command::Create(Create { naming: Naming::Automatic, .. }) = command {
                    assert_eq!(code.len(), 3);
                }
            }
            LinkOutcome::Changed(code) | LinkOutcome::Deleted(code) => match self.oracle.link(code)
            {
                Some(link) => assert_ne!(link.status, Status::Deleted, "{code}"),
                None => assert!(self.never_were.contains(&code), "{code} never was"),
            },
            LinkOutcome::Clicked(_) => {}
            LinkOutcome::Existing(_) => panic!("what is there needs no events"),
        }
    }

    fn check_after(&self, command: &Command, outcome: LinkOutcome) {
        match (command, outcome) {
            (Command::Create(create), LinkOutcome::Created(code)) => {
                let link = self.oracle.link(code).expect("it was created");
                let stored = match &create.sealed {
                    None => (create.url.clone(), create.tags.clone()),
                    Some(_) => (format!("sealed:{}", self.journal.head()), Vec::new()),
                };
                assert_eq!((&link.url, &link.tags), (&stored.0, &stored.1));
                assert_eq!(link.created, self.journal.head());
            }
            (Command::Change(change), LinkOutcome::Changed(code)) => {
                let Some(link) = self.oracle.link(code) else { return };
                if change.sealed.is_some() {
                    assert_eq!(link.url, format!("sealed:{}", self.journal.head()));
                    return assert!(link.tags.is_empty());
                }
                assert!(change.url.as_ref().is_none_or(|url| *url == link.url));
                assert!(change.tags.as_ref().is_none_or(|tags| *tags == link.tags));
            }
            (Command::Delete { .. }, LinkOutcome::Deleted(code)) => {
                assert!(self.oracle.link(code).is_none_or(|link| link.status == Status::Deleted));
            }
            other => panic!("{other:?}"),
        }
    }

    /// With everything folded, the refusal must be right.
    fn check_refusal(&self, command: &Command, refusal: &LinkRefusal) {
        let link = |code: &Code| self.oracle.link(*code);
        match (command, refusal) {
            (Command::Create(create), LinkRefusal::AliasTaken(code)) => {
                assert_eq!(create.naming, Naming::Alias(*code));
                assert!(link(code).is_some(), "{code} is free");
            }
            (Command::Create(_), LinkRefusal::Reserved(code)) => assert!(reserved(&code.as_text())),
            (Command::Create(_) | Command::Change(_), LinkRefusal::Url(_) | LinkRefusal::Tags) => {}
            (Command::Change(change), LinkRefusal::SealedTags(code)) => {
                assert!(link(code).is_some_and(|link| link.url.starts_with("sealed:")));
                assert!(change.url.is_none() && change.tags.is_some());
            }
            (Command::Create(Create { expires_at_us, .. }), LinkRefusal::TooLate) => {
                assert!(expires_at_us.is_some_and(|us| us > MAX_TIME_US));
            }
            (Command::Change(change), LinkRefusal::TooLate) => {
                assert!(change.expires_at_us.flatten().is_some_and(|us| us > MAX_TIME_US));
            }
            (Command::Change(_) | Command::Delete { .. }, LinkRefusal::Unknown(code)) => {
                assert!(link(code).is_none(), "{code} is there");
            }
            (Command::Change(_) | Command::Delete { .. }, LinkRefusal::Deleted(code)) => {
                assert_eq!(link(code).map(|link| link.status), Some(Status::Deleted));
            }
            other => panic!("{other:?}"),
        }
    }

    /// With everything folded, the command must indeed need no events.
    fn check_nothing(&self, command: &Command, outcome: LinkOutcome) {
        match (command, outcome) {
            (Command::Create(create), LinkOutcome::Existing(code)) => {
                let link = self.oracle.link(code).expect("it is there");
                assert_eq!((&link.url, create.naming), (&create.url, Naming::Deterministic));
                assert_ne!(link.status, Status::Deleted);
            }
            (Command::Change(change), LinkOutcome::Changed(code)) => {
                assert!(change.url.is_none() && change.enabled.is_none());
                assert!(self.oracle.link(code).is_some());
            }
            other => panic!("{other:?}"),
        }
    }

    /// Appends an event that violates the decision's condition.
    fn overtake(&mut self, decision: &Decision<LinkOutcome>) {
        let event = match decision.outcome {
            LinkOutcome::Created(code) => created_by_others(code, &json!({})),
            LinkOutcome::Changed(code)
            | LinkOutcome::Deleted(code)
            | LinkOutcome::Clicked(code) => {
                Event::json("LinkDeleted", &[&format!("link:{code}")], "{}")
            }
            LinkOutcome::Existing(_) => panic!("what is there needs no events"),
        };
        self.append(event);
    }
}

fn created(outcome: &LinkOutcome) -> Option<Code> {
    match outcome {
        LinkOutcome::Created(code) => Some(*code),
        _ => None,
    }
}

/// A foreign link: its data with these members added.
pub(super) fn created_by_others(code: Code, members: &Value) -> Event {
    let mut data = json!({"url": "https://others.example/", "chosen": "alias"});
    for (name, value) in members.as_object().expect("members") {
        data[name] = value.clone();
    }
    Event::json("LinkCreated", &[&format!("link:{code}"), "other"], &data.to_string())
}
