//! Commands on sorted sets.

use super::Generator;

const MEMBERS: [&str; 8] = ["a", "b", "c", "aa", "1", "", "m\0", "z"];

const SCORES: [&str; 16] = [
    "0",
    "0",
    "0",
    "1",
    "1",
    "2",
    "-1",
    "1.5",
    "0.1",
    "1e300",
    "inf",
    "-inf",
    "5e-324",
    "-0",
    "+3",
    "12345678901234567890",
];

const WRONG_SCORES: [&str; 7] = ["x", "", "nan", "1e400", "1e-400", " 1", "1 "];

const LIMITS: [&str; 14] = ["0", "1", "(1", "-inf", "+inf", "(0", "2", "(-1", "1.5", " 1", "", "(", "x", "nan"];

const NAME_LIMITS: [&str; 13] = ["-", "+", "[a", "(a", "[b", "(aa", "[", "(", "[z", "(m", "x", "", "-x"];

impl Generator {
    fn sorted_member(&mut self) -> String {
        self.pick(&MEMBERS).into()
    }

    fn score(&mut self) -> String {
        if self.below(25) == 0 { self.pick(&WRONG_SCORES).into() } else { self.pick(&SCORES).into() }
    }

    /// A command with one right answer.
    pub(super) fn sorted_set_command(&mut self) -> Vec<String> {
        match self.below(25) {
            24 => self.awaiting_sorted_command(),
            0..6 => self.zadd(),
            6 => vec!["zincrby".into(), self.key(), self.score(), self.sorted_member()],
            7 => vec!["zrem".into(), self.key(), self.sorted_member(), self.sorted_member()],
            8 => vec![self.pick(&["zscore", "zrank", "zrevrank"]).into(), self.key(), self.sorted_member()],
            9 => vec!["zmscore".into(), self.key(), self.sorted_member(), self.sorted_member()],
            10 => vec!["zcard".into(), self.key()],
            11 => vec![self.pick(&["zpopmin", "zpopmax"]).into(), self.key()],
            12 if self.below(2) == 0 => vec![self.pick(&["zpopmin", "zpopmax"]).into(), self.key(), self.small()],
            12 => {
                let keys = self.pick(&["1", "2", "0", "x"]).into();
                let end = self.pick(&["min", "MAX", "x"]).into();
                let mut words = vec!["zmpop".into(), keys, self.key(), self.key(), end];
                if self.below(2) == 0 {
                    words.extend(["count".into(), self.small()]);
                }
                words
            }
            13..16 => self.zrange(),
            16 => {
                let [min, max] = [self.pick(&LIMITS).into(), self.pick(&LIMITS).into()];
                vec![self.pick(&["zcount", "zcount", "zremrangebyscore"]).into(), self.key(), min, max]
            }
            17 => {
                let [min, max] = [self.pick(&NAME_LIMITS).into(), self.pick(&NAME_LIMITS).into()];
                vec![self.pick(&["zlexcount", "zlexcount", "zremrangebylex"]).into(), self.key(), min, max]
            }
            18 if self.below(2) == 0 => vec!["zremrangebyrank".into(), self.key(), self.small(), self.small()],
            18..20 => [vec!["zrangestore".into(), self.key()], self.zrange().split_off(1)].concat(),
            20..22 => self.sorted_algebra(),
            22 => self.intersection_count("zintercard"),
            _ => {
                let names = ["zadd", "zincrby", "zrange", "zrank", "zrem", "zpopmin", "zmpop", "zcount", "zunion"];
                let arguments = [self.key(), self.score(), self.sorted_member(), self.score(), self.sorted_member()];
                let count = self.below(6);
                [self.pick(&names).to_string()].into_iter().chain(arguments.into_iter().take(count)).collect()
            }
        }
    }

    /// A command that may wait, for a short time.
    fn awaiting_sorted_command(&mut self) -> Vec<String> {
        let timeout: String = self.pick(&["0.01", "0.01", "0.01", "-1", "x"]).into();
        if self.below(2) == 0 {
            return vec![self.pick(&["bzpopmin", "bzpopmax"]).into(), self.key(), self.key(), timeout];
        }
        let keys = self.pick(&["1", "2", "2", "0", "x"]).into();
        let end = self.pick(&["min", "MAX", "x"]).into();
        let mut words = vec!["bzmpop".into(), timeout, keys, self.key(), self.key(), end];
        if self.below(2) == 0 {
            words.extend(["count".into(), self.small()]);
        }
        words
    }

    fn zadd(&mut self) -> Vec<String> {
        let mut words = vec!["zadd".into(), self.key()];
        while self.below(3) == 0 {
            words.push(self.pick(&["nx", "xx", "gt", "LT", "ch", "CH", "incr"]).into());
        }
        for _ in 0..=self.below(3) {
            words.extend([self.score(), self.sorted_member()]);
        }
        if self.below(25) == 0 {
            words.pop();
        }
        words
    }

    fn zrange(&mut self) -> Vec<String> {
        let names = [
            "zrange",
            "zrange",
            "zrange",
            "zrevrange",
            "zrangebyscore",
            "zrevrangebyscore",
            "zrangebylex",
            "zrevrangebylex",
        ];
        let name = self.pick(&names);
        let by = if name == "zrange" { self.pick(&["", "byscore", "BYLEX"]) } else { "" };
        let ends: &[&str] = match (name, by) {
            ("zrangebyscore" | "zrevrangebyscore", _) | (_, "byscore") => &LIMITS,
            ("zrangebylex" | "zrevrangebylex", _) | (_, "BYLEX") => &NAME_LIMITS,
            _ => &["0", "1", "2", "-1", "-2", "100", "-100", "x", "9223372036854775807", "-9223372036854775808"],
        };
        let mut words = vec![name.into(), self.key(), self.pick(ends).into(), self.pick(ends).into()];
        if !by.is_empty() {
            words.push(by.into());
        }
        while self.below(2) == 0 {
            match self.below(6) {
                0 | 1 => words.push(self.pick(&["rev", "REV"]).into()),
                2 | 3 => words.push("withscores".into()),
                4 => words.extend(["limit".into(), self.small(), self.small()]),
                _ => words.push(self.pick(&["limit", "byscore", "bylex", "x"]).into()),
            }
        }
        words
    }

    fn sorted_algebra(&mut self) -> Vec<String> {
        let name = self.pick(&["zunion", "zinter", "zdiff", "zunionstore", "zinterstore", "zdiffstore"]);
        let mut words = vec![name.to_string()];
        if name.ends_with("store") {
            words.push(self.key());
        }
        words.extend([self.pick(&["2", "2", "2", "2", "1", "3", "0", "x"]).into(), self.key(), self.key()]);
        while self.below(2) == 0 {
            match self.below(6) {
                0 | 1 => words.extend(["weights".into(), self.score(), self.score()]),
                2 => words.extend(["aggregate".into(), self.pick(&["sum", "min", "MAX", "x"]).into()]),
                3 | 4 => words.push("withscores".into()),
                _ => words.push(self.pick(&["weights", "aggregate", "x"]).into()),
            }
        }
        words
    }

    /// A command whose answer has no order.
    pub(super) fn sorted_set_question(&mut self) -> Vec<String> {
        match self.below(3) {
            0 => {
                let mut words = vec!["zscan".into(), self.key(), "0".into()];
                if self.below(3) == 0 {
                    words.extend(["match".into(), self.pick(&["*", "a*", "?", "x"]).into()]);
                }
                words
            }
            1 => vec!["zrandmember".into(), self.key(), self.pick(&["100", "0", "x"]).into()],
            _ => vec!["zrandmember".into(), self.key(), "100".into(), self.pick(&["withscores", "nope"]).into()],
        }
    }
}
