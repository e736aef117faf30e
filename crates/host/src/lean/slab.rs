//! Connections by token. A token is an index and a generation, so that an event for a closed
//! connection never reaches its successor.

/// Identifies a connection in epoll and in lists of waiting connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Token(u64);

impl Token {
    /// A token that no slab uses, for other descriptors.
    pub(crate) const fn reserved(number: u32) -> Token {
        Token(u64::MAX - number as u64)
    }

    /// As epoll carries it.
    pub(crate) fn to_u64(self) -> u64 {
        self.0
    }

    /// As epoll gives it back.
    pub(crate) fn from_u64(number: u64) -> Token {
        Token(number)
    }

    fn new(place: usize, generation: u32) -> Token {
        Token(u64::from(generation) << 32 | place as u64)
    }

    fn place(self) -> usize {
        (self.0 & u64::from(u32::MAX)) as usize
    }

    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }
}

struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

/// Values by token.
pub(crate) struct Slab<T> {
    slots: Vec<Slot<T>>,
    free: Vec<usize>,
}

impl<T> Slab<T> {
    /// An empty one.
    pub(crate) fn new() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    /// Puts a value in.
    pub(crate) fn insert(&mut self, value: T) -> Token {
        let place = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            self.slots.len() - 1
        });
        let slot = &mut self.slots[place];
        slot.value = Some(value);
        Token::new(place, slot.generation)
    }

    /// The value of a token, if it is still there.
    pub(crate) fn get_mut(&mut self, token: Token) -> Option<&mut T> {
        let slot = self.slots.get_mut(token.place())?;
        if slot.generation == token.generation() { slot.value.as_mut() } else { None }
    }

    /// Takes a value out.
    pub(crate) fn remove(&mut self, token: Token) -> Option<T> {
        let slot = self.slots.get_mut(token.place())?;
        if slot.generation != token.generation() {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(token.place());
        Some(value)
    }

    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Number of slots, used or free.
    pub(crate) fn places(&self) -> usize {
        self.slots.len()
    }

    /// The token of the value in a slot, if any.
    pub(crate) fn at(&self, place: usize) -> Option<Token> {
        let slot = self.slots.get(place)?;
        slot.value.as_ref().map(|_| Token::new(place, slot.generation))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_outlives_its_value_and_finds_no_other() {
        let mut slab = Slab::new();
        let (a, b) = (slab.insert('a'), slab.insert('b'));
        assert_eq!(slab.remove(a), Some('a'));
        let c = slab.insert('c');
        assert_eq!((slab.places(), slab.len()), (2, 2), "the place is used again");
        assert_eq!(slab.get_mut(a), None);
        assert_eq!(slab.remove(a), None);
        assert_eq!((slab.get_mut(b).copied(), slab.get_mut(c).copied()), (Some('b'), Some('c')));
        assert_eq!((slab.at(0), slab.at(1), slab.at(2)), (Some(c), Some(b), None));
        assert_eq!(slab.get_mut(Token::reserved(0)), None);
        assert_eq!(Token::from_u64(c.to_u64()), c);
    }
}
