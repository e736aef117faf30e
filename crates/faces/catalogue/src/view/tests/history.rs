//! A small version of the server's shell: decisions on top of each other, folds at any time,
//! foreign events in between.

use super::super::command::{ItemChanges, KnownStock, NewItem, TopicRef};
use super::super::event::{
    ItemAdded, ItemChanged, ItemPriced, OrderCancelled, OrderPlaced, StockChanged, TopicName,
};
use super::super::money::Currency;
use super::model::Model;
use super::*;
use proptest::prelude::*;
use wellspring_types::QueryItem;

/// A step of a history.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Command(Command),
    /// A foreign event is appended.
    Foreign(Event),
    /// This many events are folded.
    Fold(usize),
    /// Folded decisions are forgotten.
    Sweep,
}

/// A decision whose events have positions.
struct Open {
    ticket: Ticket,
    last: Position,
    unless: Vec<QueryItem>,
}

#[derive(Default)]
pub(super) struct Shell {
    pub(super) log: Vec<StoredFact>,
    view: Option<Catalogue>,
    folded: usize,
    staged: StagedChanges,
    open: Vec<Open>,
    swept: Position,
    tickets: Ticket,
    pub(super) conflicts: usize,
}

impl Shell {
    fn view(&mut self) -> &mut Catalogue {
        self.view.get_or_insert_with(Catalogue::new)
    }

    fn fold(&mut self, events: usize) {
        for _ in 0..events.min(self.log.len() - self.folded) {
            let stored = self.log[self.folded].clone();
            self.view().apply(&stored);
            self.folded += 1;
        }
    }

    fn sweep(&mut self) {
        self.swept = self.folded as Position;
        let swept = self.swept;
        let (gone, open) =
            std::mem::take(&mut self.open).into_iter().partition(|open| open.last <= swept);
        self.open = open;
        for Open { ticket, .. } in gone {
            Catalogue::settle(&mut self.staged, ticket);
        }
    }

    fn append(&mut self, event: Event) {
        let position = self.log.len() as Position + 1;
        self.log.push(StoredFact { position, event });
    }

    fn execute(&mut self, command: &Command) -> Option<CatalogueOutcome> {
        self.tickets += 1;
        let ticket = self.tickets;
        let folded = Arc::clone(self.view().folded());
        let decision = Catalogue::decide(&folded, &self.staged, &(), command).ok()?;
        if decision.events.is_empty() {
            return Some(decision.outcome);
        }
        Catalogue::stage(&mut self.staged, &decision, ticket);
        // As in `host/view/deciding.rs`.
        let own_last = |item| {
            let own = self.open.iter().rev().find(|open| open.unless.contains(item));
            own.map_or(self.swept, |open| self.swept.max(open.last))
        };
        let after =
            decision.unless.iter().map(own_last).min().expect("every decision names something");
        let stands_in_the_way = |stored: &&StoredFact| {
            let matches = |item: &QueryItem| {
                item.matches(&stored.event.event_type, stored.event.tags.iter().map(String::as_str))
            };
            decision.unless.iter().any(matches)
        };
        if self.log[after as usize..].iter().any(|stored| stands_in_the_way(&stored)) {
            Catalogue::settle(&mut self.staged, ticket);
            self.conflicts += 1;
            return None;
        }
        let first = self.log.len() + 1;
        decision.events.into_iter().for_each(|event| self.append(event));
        let last = self.log.len() as Position;
        Catalogue::placed(&mut self.staged, ticket, last);
        self.open.push(Open { ticket, last, unless: decision.unless });
        // Everything decided and appended is valid.
        let before = super::folded(&self.log[..first - 1]);
        for at in first..=self.log.len() {
            let stored = &self.log[at - 1];
            let mut state = before.folded().write();
            let applied =
                state.apply(&facts_of(stored).unwrap(), stored.position, stored.recorded_at_us());
            assert_ne!(applied, super::super::apply::AppliedChange::Nothing, "{stored:?}");
        }
        Some(decision.outcome)
    }

    pub(super) fn step(&mut self, step: &Step) {
        match step {
            Step::Command(command) => drop(self.execute(command)),
            Step::Foreign(event) => self.append(event.clone()),
            Step::Fold(events) => self.fold(*events),
            Step::Sweep => self.sweep(),
        }
    }
}

fn any_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "", "x\u{1}"]).prop_map(str::to_owned)
}

fn good_name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c", "ä b"]).prop_map(str::to_owned)
}

fn any_command() -> impl Strategy<Value = Command> {
    let item = || 1u32..4;
    let topic =
        || prop_oneof![(1u32..4).prop_map(TopicRef::Id), good_name().prop_map(TopicRef::Name)];
    let new = (
        prop::option::of(good_name().prop_map(|n| n.replace("ä b", "d"))),
        good_name(),
        topic(),
        0u64..3,
        0u32..4,
    );
    let new = new
        .boxed()
        .prop_map(|(sku, name, topic, price_minor, stock)| NewItem {
            sku,
            name,
            description: String::new(),
            topic,
            price_minor,
            currency: Currency::USD,
            stock,
        })
        .boxed();
    let changes = (
        prop::option::of(good_name()),
        prop::option::of(topic()),
        prop::option::of(any::<bool>()),
        any::<bool>(),
    );
    let changes = changes.prop_map(|(name, topic, withdrawn, priced)| ItemChanges {
        name,
        description: None,
        topic,
        price: priced.then(|| "1.5".to_owned()),
        withdrawn,
    });
    prop_oneof![
        2 => good_name().prop_map(|name| Command::AddTopic { name }),
        1 => (1u32..4, good_name()).prop_map(|(topic, name)| Command::RenameTopic { topic, name }),
        3 => new.clone().prop_map(Command::Add),
        3 => (new, prop::sample::select(vec![KnownStock::Keep, KnownStock::Set]))
            .prop_map(|(new, known_stock)| Command::Put(new, known_stock)),
        3 => (item(), changes, prop::option::of(0u64..20)).prop_map(|(item, changes, unless_changed_since)| {
            Command::Change { item, changes, unless_changed_since }
        }),
        3 => (item(), -3i64..4).prop_map(|(item, by)| Command::Stock { item, by }),
        8 => (item(), 0u32..3).prop_map(|(item, amount)| Command::Order { item, amount }),
        4 => (item(), 1u32..4).prop_map(|(item, order)| Command::Cancel { item, order }),
    ]
}

/// Arbitrary foreign events: most make no sense, or only in some states.
fn any_foreign() -> impl Strategy<Value = Event> {
    let item = || 1u32..5;
    let fact = prop_oneof![
        (1u32..4, any_name())
            .prop_map(|(topic, name)| Fact::TopicAdded(TopicName { topic, name: name.into() })),
        (1u32..4, any_name())
            .prop_map(|(topic, name)| Fact::TopicRenamed(TopicName { topic, name: name.into() })),
        (item(), any_name(), 1u32..4, prop::sample::select(vec!["USD", "usd", "JPY"])).prop_map(
            |(item, name, topic, currency)| Fact::ItemAdded(ItemAdded {
                item,
                sku: None,
                name: name.into(),
                description: "".into(),
                topic,
                price_minor: 1,
                currency: currency.into(),
                stock: 3,
            })
        ),
        (item(), prop::option::of(any_name()), prop::option::of(1u32..5)).prop_map(
            |(item, name, topic)| {
                Fact::ItemChanged(ItemChanged {
                    item,
                    name: name.map(Into::into),
                    topic,
                    ..ItemChanged::default()
                })
            }
        ),
        (item(), any::<u64>())
            .prop_map(|(item, price_minor)| Fact::ItemPriced(ItemPriced { item, price_minor })),
        (item(), prop_oneof![-3i64..4, any::<i64>()])
            .prop_map(|(item, by)| Fact::StockChanged(StockChanged { item, by })),
        (item(), 1u32..4, 0u32..3).prop_map(|(item, order, amount)| {
            Fact::OrderPlaced(OrderPlaced { item, order, amount, price_minor: 2 })
        }),
        (item(), 1u32..4, 0u32..3).prop_map(|(item, order, amount)| {
            Fact::OrderCancelled(OrderCancelled { item, order, amount })
        }),
    ];
    (fact, 0u32..8).prop_map(|(fact, spoil)| {
        let mut event = fact.event();
        match spoil {
            0 => event.tags.clear(),
            1 => event.data = b"{}".to_vec(),
            _ => {}
        }
        event
    })
}

pub(super) fn any_step() -> impl Strategy<Value = Step> {
    prop_oneof![
        12 => any_command().prop_map(Step::Command),
        3 => any_foreign().prop_map(Step::Foreign),
        4 => (0usize..5).prop_map(Step::Fold),
        2 => Just(Step::Sweep),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn whatever_is_decided_holds_and_the_fold_is_that_of_a_naive_model(
        steps in prop::collection::vec(any_step(), 1..80)
    ) {
        let mut shell = Shell::default();
        steps.iter().for_each(|step| shell.step(step));
        shell.fold(usize::MAX);
        let live = dump(&shell.view().folded().read());
        let rebuilt = folded(&shell.log);
        prop_assert_eq!(&live, &dump(&rebuilt.folded().read()));
        let model = Model::of(&shell.log);
        let state = rebuilt.folded().read();
        model.compare(&state);
        prop_assert_eq!(rebuilt.folded().changed_at(), state.changed_at());
    }
}

#[test]
fn orders_of_one_item_are_decided_on_top_of_each_other() {
    let mut shell = Shell::default();
    let new = NewItem {
        sku: None,
        name: "a".into(),
        description: String::new(),
        topic: TopicRef::Name("t".into()),
        price_minor: 1,
        currency: Currency::USD,
        stock: 5,
    };
    assert_eq!(shell.execute(&Command::Add(new)), Some(CatalogueOutcome::Added(1)));
    shell.fold(usize::MAX);
    shell.sweep();
    let order = Command::Order { item: 1, amount: 2 };
    assert_eq!(shell.execute(&order), Some(CatalogueOutcome::Ordered { item: 1, order: 1 }));
    // Folded or not, it counts once.
    shell.fold(1);
    assert_eq!(shell.execute(&order), Some(CatalogueOutcome::Ordered { item: 1, order: 2 }));
    assert_eq!(
        shell.execute(&order),
        Some(CatalogueOutcome::SoldOut { item: 1, amount: 2, stock: 1 })
    );
    for _ in 0..2 {
        let cancelled = shell.execute(&Command::Cancel { item: 1, order: 2 });
        assert_eq!(cancelled, Some(CatalogueOutcome::Cancelled { item: 1, order: 2 }));
    }
    assert_eq!(shell.execute(&order), Some(CatalogueOutcome::Ordered { item: 1, order: 3 }));
    assert_eq!(shell.conflicts, 0, "none stood in another's way");
}
