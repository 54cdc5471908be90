//! Commands on sets.

use super::Generator;

const MEMBERS: [&str; 7] = ["a", "b", "c", "1", "2", "", "m\0"];

/// As many as there are, or more.
const ALL: &str = "100";

impl Generator {
    fn member(&mut self) -> String {
        self.pick(&MEMBERS).into()
    }

    /// A command with one right answer.
    pub(super) fn set_command(&mut self) -> Vec<String> {
        match self.below(13) {
            0..3 => vec!["sadd".into(), self.key(), self.member(), self.member()],
            3 => vec!["srem".into(), self.key(), self.member(), self.member()],
            4 => vec!["sismember".into(), self.key(), self.member()],
            5 => vec!["smismember".into(), self.key(), self.member(), self.member()],
            6 => vec!["scard".into(), self.key()],
            7 => vec!["smove".into(), self.key(), self.key(), self.member()],
            8 | 9 => {
                let name = self.pick(&["sinterstore", "sunionstore", "sdiffstore"]).into();
                vec![name, self.key(), self.key(), self.key()]
            }
            10 => self.intersection_count("sintercard"),
            _ => {
                let name = ["sadd", "srem", "smove", "spop", "srandmember", "sscan", "sinter", "sdiffstore"];
                let arguments = [self.key(), "x".into(), self.member(), self.member()];
                let count = self.below(5);
                let name = self.pick(&name).to_string();
                // One that draws would draw something else from each server.
                let count = if ["spop", "srandmember"].contains(&&*name) && count == 1 { 2 } else { count };
                [name].into_iter().chain(arguments.into_iter().take(count)).collect()
            }
        }
    }

    /// How many members two keys share, of sets or of sorted sets.
    pub(super) fn intersection_count(&mut self, name: &str) -> Vec<String> {
        let keys = self.pick(&["1", "2", "2", "3", "0", "x"]).into();
        let mut words = vec![name.into(), keys, self.key(), self.key()];
        match self.below(3) {
            0 => words.extend(["limit".into(), self.small()]),
            1 => words.push("limit".into()),
            _ => {}
        }
        words
    }

    /// A command whose answer has no order.
    pub(super) fn set_question(&mut self) -> Vec<String> {
        match self.below(6) {
            0 | 1 => vec!["smembers".into(), self.key()],
            2 | 3 => vec![self.pick(&["sinter", "sunion", "sdiff"]).into(), self.key(), self.key(), self.key()],
            4 => vec!["sscan".into(), self.key(), "0".into(), "count".into(), "1000".into()],
            _ => vec![self.pick(&["spop", "srandmember"]).into(), self.key(), self.pick(&[ALL, "0", "x"]).into()],
        }
    }
}
