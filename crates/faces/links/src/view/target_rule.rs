//! The rule for allowed targets, which the server derives from its settings and passes to the view.

use super::apply::plainness;
use super::event::sealed_at;
use super::url::{self, Target, UrlFault};
use std::fmt;
use std::sync::Arc;

/// Whether the settings allow a link's target. Not stored in snapshots, because settings can
/// change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TargetVerdict {
    /// The link may be followed.
    #[default]
    Followed,
    /// The settings refuse the target.
    Refused,
}

type Judge = dyn Fn(&Target<'_>) -> TargetVerdict + Send + Sync;

/// Judges targets when they are folded, whatever wrote the event. The default allows all targets.
#[derive(Clone, Default)]
pub struct TargetRule(Option<Arc<Judge>>);

impl TargetRule {
    /// A rule from a function, which must be deterministic.
    pub fn of(judge: impl Fn(&Target<'_>) -> TargetVerdict + Send + Sync + 'static) -> TargetRule {
        TargetRule(Some(Arc::new(judge)))
    }

    fn judge(&self, target: &Target<'_>) -> TargetVerdict {
        self.0.as_ref().map_or(TargetVerdict::Followed, |judge| judge(target))
    }

    /// Whether a folded URL can be sent in a header unchanged, and the verdict on it. A sealed one
    /// is judged when it is opened.
    pub(super) fn judge_url(&self, text: &str) -> Result<(bool, TargetVerdict), UrlFault> {
        if sealed_at(text).is_some() {
            return Ok((false, TargetVerdict::Followed));
        }
        let target = url::kept(text)?;
        Ok((plainness(&target, text), self.judge(&target)))
    }
}

impl fmt::Debug for TargetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TargetRule(..)" } else { "TargetRule(all)" })
    }
}
