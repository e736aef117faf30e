//! What nodes tell each other. Plain Raft: terms, indexes, votes.

use crate::frame::Item;
use crate::wal::{Entry, EntryId, Vote};
use bytes::Bytes;

/// A message of one node to another. Messages may be lost, doubled and overtake each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    /// A request of the Raft protocol or of the elector.
    Ask {
        /// Tells its answer from others; unique in the sender's process.
        request: u64,
        /// What is asked.
        question: Question,
    },
    /// The answer.
    Answer {
        /// The request.
        request: u64,
        /// What is answered.
        answer: Answer,
    },
    /// Offers for the orderer to place.
    Offers(Vec<Offer>),
    /// The sender does not order: these offers of a process were not proposed. They may have come
    /// by way of the receiver, which had taken them while it ordered itself.
    NotOrdering {
        /// The number of the process.
        start: u64,
        /// Those of its offers.
        offers: Vec<u64>,
    },
    /// The sender, a voter, is to order in place of the receiver.
    HandOver {
        /// The term in which the receiver orders: the message means nothing in another one.
        term: u64,
    },
    /// The sender has stopped ordering in favour of the receiver, which stands for election.
    Stand {
        /// The term in which it ordered: as above.
        term: u64,
    },
}

/// An offer that travels.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer(pub(crate) Item);

/// What a node asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// Raft's AppendEntries, which is also the heartbeat.
    Append {
        /// The orderer's vote, which is committed.
        vote: Vote,
        /// The entry before the first one.
        before: EntryId,
        /// What follows it.
        entries: Vec<Entry>,
        /// The last entry that the sender knows to be committed.
        committed: EntryId,
    },
    /// Raft's RequestVote.
    Elect {
        /// The candidate's vote for itself.
        vote: Vote,
        /// Its last entry.
        last: EntryId,
    },
    /// Raft's InstallSnapshot: the checkpoint for a node that lacks purged entries.
    Install {
        /// The orderer's vote, which is committed.
        vote: Vote,
        /// The checkpoint, as it is on disk.
        checkpoint: Bytes,
    },
    /// Whether the receiver would vote for a node whose last entry is this one.
    WouldElect {
        /// The entry.
        last: EntryId,
    },
    /// The last place that is committed, confirmed by a majority after this question.
    End,
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// To `Append`.
    Appended(AppendOutcome),
    /// To `Elect`.
    Elected {
        /// The voter's vote.
        vote: Vote,
        /// Whether it voted for the candidate.
        is_granted: bool,
        /// The voter's last entry.
        last: EntryId,
    },
    /// To `Install`: the receiver's vote, which tells whether it has accepted the sender's.
    Installed(Vote),
    /// To `WouldElect`.
    WouldElect(bool),
    /// To `End`: the index; `None` if the receiver does not order or could not confirm it.
    End(Option<u64>),
}

/// What became of entries at a follower.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AppendOutcome {
    /// All of them are durable.
    Appended,
    /// Those up to this one are.
    AppendedUpTo(EntryId),
    /// The entry before them is not the one that it has.
    Conflict,
    /// It knows of a later vote.
    LaterVote(Vote),
}
