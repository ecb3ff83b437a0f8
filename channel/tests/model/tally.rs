//! How often the rare things came up, so that a search which no longer reaches them fails.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A receiver was told of a message that can be taken from the line.
    Nudge,
    /// A grant was taken back.
    Lapse,
    /// One was, for somebody who only asked.
    LapseForTry,
    /// A reservation was polled whose grant had been taken back.
    WaitAgain,
    /// A receiver passed its wake on.
    PassOn,
    /// A message made way.
    Evict,
    /// A message was withdrawn.
    Withdraw,
    /// The last sender went, and a leaked send still stood in line.
    Orphan,
}

impl Event {
    const ALL: [Self; 8] = [
        Self::Nudge,
        Self::Lapse,
        Self::LapseForTry,
        Self::WaitAgain,
        Self::PassOn,
        Self::Evict,
        Self::Withdraw,
        Self::Orphan,
    ];

    /// Whether it needs a task of ours.
    fn needs_task(self) -> bool {
        matches!(self, Self::Lapse | Self::LapseForTry | Self::WaitAgain)
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tally([usize; Event::ALL.len()]);

impl Tally {
    pub(crate) fn add(&mut self, event: Event, times: usize) {
        self.0[event as usize] += times;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (mine, more) in self.0.iter_mut().zip(other.0) {
            *mine += more;
        }
    }

    /// What did not come up as often as `times`, and can.
    pub(crate) fn rarer_than(&self, times: usize, in_task: bool) -> Vec<Event> {
        let rare =
            |event: &Event| self.0[*event as usize] < times && (in_task || !event.needs_task());
        Event::ALL.into_iter().filter(rare).collect()
    }
}
