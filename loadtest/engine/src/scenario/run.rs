//! A scenario as a source of requests: what all workers share.

use super::data::{Order, Table};
use super::error::ScenarioError;
use super::file::{Scenario, UnixClock};
use super::names::Slot;
use super::plan::{RequestPlan, Step};
use super::setup::SetupValues;
use super::template::Template;
use super::value::Value;
use super::worker::ScenarioWorkload;
use crate::invalid::Invalid;
use crate::workload::{Endpoint, Source, Workload};
use std::sync::Arc;

/// The measured requests of a scenario.
#[derive(Clone, Debug)]
pub struct ScenarioSource {
    shared: Arc<Shared>,
}

#[derive(Debug)]
pub(crate) struct Shared {
    name: String,
    identity: Vec<u8>,
    /// All requests, step by step; their numbers are those of the endpoints.
    pub(crate) requests: Vec<RequestPlan>,
    pub(crate) steps: Vec<StepPlan>,
    pub(crate) total_weight: u64,
    pub(crate) tables: Vec<Table>,
    pub(crate) slots: Vec<Slot>,
    /// What each user knows in the beginning, by slot.
    pub(crate) first_values: Vec<Option<String>>,
    /// What each worker's pools hold in the beginning, by slot.
    pub(crate) first_kept: Vec<Vec<String>>,
    pub(crate) counter_starts: Vec<u64>,
    /// The number of each request's first check.
    pub(crate) first_check: Vec<u16>,
    check_texts: Vec<String>,
    pub(crate) clock: UnixClock,
}

/// A step as workers see it.
#[derive(Debug)]
pub(crate) struct StepPlan {
    pub(crate) weight: u64,
    /// Its requests, as numbers into [`Shared::requests`].
    pub(crate) first: u16,
    pub(crate) count: u16,
    pub(crate) requires: Vec<u16>,
    pub(crate) lets: Vec<(u16, Template)>,
    /// Slots to be drawn from their pools when it begins.
    pub(crate) drawn: Vec<u16>,
    /// Tables of which a row is taken when it begins.
    pub(crate) tables: Vec<u16>,
    /// Whether it uses counters.
    pub(crate) counts: bool,
}

/// More requests or checks than numbers for them.
const MOST: usize = u16::MAX as usize;

impl ScenarioSource {
    pub(crate) fn new(
        scenario: &Scenario,
        values: &SetupValues,
        clock: UnixClock,
    ) -> Result<Self, ScenarioError> {
        let names = &scenario.names;
        let wrong = |why: Invalid| ScenarioError::new(format!("scenario {:?}", scenario.name), why);
        let bind = |step: &RequestPlan| {
            step.bind(&values.captured)
                .map_err(|why| ScenarioError::new(format!("step {:?}", step.name), why))
        };
        let mut requests = Vec::new();
        let mut steps = Vec::new();
        for step in scenario.steps.iter().filter(|step| step.weight > 0) {
            let first =
                u16::try_from(requests.len()).map_err(|_| wrong("too many requests".into()))?;
            for request in &step.requests {
                requests.push(bind(request)?);
            }
            let lets = step.lets.iter().map(|(slot, template)| {
                Ok((*slot, template.bind(&values.captured).map_err(wrong)?))
            });
            let lets = lets.collect::<Result<Vec<_>, ScenarioError>>()?;
            steps.push(StepPlan::new(step, first, lets, &names.slots));
        }
        if steps.is_empty() {
            return Err(wrong(
                "every step has weight 0; give a weight above 0 to what should be sent".into(),
            ));
        }
        let mut first_check = Vec::new();
        let mut check_texts = Vec::new();
        for request in &requests {
            first_check.push(u16::try_from(check_texts.len()).unwrap_or(u16::MAX));
            let count = request.checks.len() + request.captures.len();
            check_texts.extend((0..count).map(|check| request.check_text(check)));
        }
        if requests.len() > MOST || check_texts.len() > MOST {
            return Err(wrong(format!("expected at most {MOST} requests and checks").into()));
        }
        let first_value = |slot: &Slot| {
            let at = names.setup.iter().position(|name| *name == slot.name)?;
            values.captured.get(at).filter(|_| slot.keep.is_none())?.clone()
        };
        let mut first_kept = values.kept.clone();
        first_kept.resize(names.slots.len(), Vec::new());
        let counter_starts = if values.counters.len() == names.counters.len() {
            values.counters.clone()
        } else {
            scenario.counter_starts()
        };
        Ok(ScenarioSource {
            shared: Arc::new(Shared {
                name: scenario.name.clone(),
                identity: scenario.identity(),
                total_weight: steps.iter().map(|step| step.weight).sum(),
                requests,
                steps,
                tables: scenario.tables.clone(),
                slots: names.slots.clone(),
                first_values: names.slots.iter().map(first_value).collect(),
                first_kept,
                counter_starts,
                first_check,
                check_texts,
                clock,
            }),
        })
    }
}

impl StepPlan {
    fn new(step: &Step, first: u16, lets: Vec<(u16, Template)>, slots: &[Slot]) -> Self {
        let mut plan = StepPlan {
            weight: u64::from(step.weight),
            first,
            count: u16::try_from(step.requests.len()).unwrap_or(u16::MAX),
            requires: step.requires.clone(),
            drawn: Vec::new(),
            tables: Vec::new(),
            counts: false,
            lets,
        };
        let set: Vec<u16> = plan.lets.iter().map(|(slot, _)| *slot).collect();
        let in_lets = step.lets.iter().flat_map(|(_, template)| template.values());
        for value in step.requests.iter().flat_map(RequestPlan::values).chain(in_lets) {
            match value {
                Value::Slot(slot, _) => {
                    let kept = slots.get(usize::from(*slot)).is_some_and(|s| s.keep.is_some());
                    if kept && !set.contains(slot) && !plan.drawn.contains(slot) {
                        plan.drawn.push(*slot);
                    }
                }
                Value::Column { data, .. } if !plan.tables.contains(data) => {
                    plan.tables.push(*data)
                }
                Value::Counter(..) => plan.counts = true,
                _ => {}
            }
        }
        plan
    }
}

impl Shared {
    pub(crate) fn check_text(&self, check: u16) -> String {
        self.check_texts
            .get(usize::from(check))
            .map_or_else(|| format!("check {check}"), Clone::clone)
    }

    /// Whether each row of a table may be used only once.
    pub(crate) fn is_once(&self, table: u16) -> bool {
        self.tables.get(usize::from(table)).is_some_and(|table| table.order == Order::Once)
    }
}

impl Source for ScenarioSource {
    fn endpoints(&self) -> Vec<Endpoint> {
        let endpoint =
            |request: &RequestPlan| Endpoint { name: request.name.clone(), needs: request.needs() };
        self.shared.requests.iter().map(endpoint).collect()
    }

    fn name(&self) -> String {
        self.shared.name.clone()
    }

    fn identity(&self) -> Vec<u8> {
        self.shared.identity.clone()
    }

    fn workload(&self, worker: u32, workers: u32, seed: u64) -> Box<dyn Workload> {
        Box::new(ScenarioWorkload::new(Arc::clone(&self.shared), worker, workers, seed))
    }
}
