//! Which targets may be followed: a rule that the shell gives the view, a function of its settings.

use super::apply::plainness;
use super::url::{self, Target, UrlFault};
use std::fmt;
use std::sync::Arc;

/// What the settings say of a link's target. Not kept in snapshots: other settings may say
/// otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum TargetVerdict {
    /// The link may be followed.
    #[default]
    Followed,
    /// It leads where no link may lead.
    Refused,
}

type Judge = dyn Fn(&Target<'_>) -> TargetVerdict + Send + Sync;

/// Judges targets when they are folded, however the event came to be. The default allows all of
/// them.
#[derive(Clone, Default)]
pub struct TargetRule(Option<Arc<Judge>>);

impl TargetRule {
    /// The rule that this function is. It must give the same answer for the same target.
    pub fn of(judge: impl Fn(&Target<'_>) -> TargetVerdict + Send + Sync + 'static) -> TargetRule {
        TargetRule(Some(Arc::new(judge)))
    }

    fn judge(&self, target: &Target<'_>) -> TargetVerdict {
        self.0.as_ref().map_or(TargetVerdict::Followed, |judge| judge(target))
    }

    /// Whether a URL may stand in a header as it is, and the verdict on it.
    pub(super) fn judge_url(&self, text: &str) -> Result<(bool, TargetVerdict), UrlFault> {
        let target = url::check(text)?;
        Ok((plainness(&target, text), self.judge(&target)))
    }
}

impl fmt::Debug for TargetRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "TargetRule(..)" } else { "TargetRule(all)" })
    }
}
