//! Commands on lists.

use super::Generator;

const ELEMENTS: [&str; 5] = ["a", "b", "c", "", "e\0"];

/// Whole numbers at the ends of what there is.
const EXTREMES: [&str; 4] =
    ["9223372036854775807", "-9223372036854775807", "-9223372036854775808", "9223372036854775808"];

impl Generator {
    fn element(&mut self) -> String {
        self.pick(&ELEMENTS).into()
    }

    fn index(&mut self) -> String {
        if self.below(12) == 0 { self.pick(&EXTREMES).into() } else { self.small() }
    }

    /// A command with one right answer, as all on lists have.
    pub(super) fn list_command(&mut self) -> Vec<String> {
        match self.below(21) {
            20 => self.awaiting_command(),
            0..5 => {
                let name = self.pick(&["lpush", "rpush"]).into();
                vec![name, self.key(), self.element(), self.element(), self.element()]
            }
            5 => vec![self.pick(&["lpushx", "rpushx"]).into(), self.key(), self.element()],
            6 => vec![self.pick(&["lpop", "rpop"]).into(), self.key()],
            7 => vec![self.pick(&["lpop", "rpop"]).into(), self.key(), self.index()],
            8 => vec!["llen".into(), self.key()],
            9 => vec!["lindex".into(), self.key(), self.index()],
            10 | 11 => vec!["lrange".into(), self.key(), self.index(), self.index()],
            12 => vec!["lset".into(), self.key(), self.index(), self.element()],
            13 => vec!["lrem".into(), self.key(), self.index(), self.element()],
            14 if self.below(3) == 0 => vec!["ltrim".into(), self.key(), self.index(), self.index()],
            14 | 15 => {
                let side = self.pick(&["before", "after", "AFTER", "x"]).into();
                vec!["linsert".into(), self.key(), side, self.element(), self.element()]
            }
            16 => [vec!["lpos".into(), self.key(), self.element()], self.lpos_options()].concat(),
            17 if self.below(2) == 0 => vec!["rpoplpush".into(), self.key(), self.key()],
            17 => {
                let ends = [self.pick(&["left", "right", "x"]), self.pick(&["LEFT", "right"])];
                vec!["lmove".into(), self.key(), self.key(), ends[0].into(), ends[1].into()]
            }
            18 => {
                let keys = self.pick(&["1", "2", "2", "3", "0", "x"]).into();
                let end = self.pick(&["left", "RIGHT", "right", "x"]).into();
                [vec!["lmpop".into(), keys, self.key(), self.key(), end], self.lmpop_options()].concat()
            }
            _ => {
                let names = ["lpush", "rpop", "lset", "lrange", "ltrim", "lpos", "lmove", "linsert", "lmpop"];
                let arguments = [self.key(), self.element(), self.small(), self.element(), self.element()];
                let count = self.below(6);
                [self.pick(&names).to_string()].into_iter().chain(arguments.into_iter().take(count)).collect()
            }
        }
    }

    /// A command that may wait, for a short time.
    fn awaiting_command(&mut self) -> Vec<String> {
        let timeout: String = self.pick(&["0.01", "0.01", "0.01", "0.001", "-1", "x", "", "1e30"]).into();
        match self.below(5) {
            0 | 1 => vec![self.pick(&["blpop", "brpop"]).into(), self.key(), self.key(), timeout],
            2 => vec!["brpoplpush".into(), self.key(), self.key(), timeout],
            3 => {
                let ends = [self.pick(&["left", "right", "x"]), self.pick(&["LEFT", "right"])];
                vec!["blmove".into(), self.key(), self.key(), ends[0].into(), ends[1].into(), timeout]
            }
            _ => {
                let keys = self.pick(&["1", "2", "2", "3", "0", "x"]).into();
                let end = self.pick(&["left", "RIGHT", "right", "x"]).into();
                [vec!["blmpop".into(), timeout, keys, self.key(), self.key(), end], self.lmpop_options()].concat()
            }
        }
    }

    fn lpos_options(&mut self) -> Vec<String> {
        let mut options = Vec::new();
        while self.below(2) == 0 {
            options.push(self.pick(&["rank", "count", "MAXLEN", "nope"]).into());
            if self.below(6) > 0 {
                options.push(self.index());
            }
        }
        options
    }

    fn lmpop_options(&mut self) -> Vec<String> {
        let mut options = Vec::new();
        while self.below(2) == 0 {
            options.push(self.pick(&["count", "COUNT", "nope"]).into());
            if self.below(6) > 0 {
                options.push(self.index());
            }
        }
        options
    }
}
