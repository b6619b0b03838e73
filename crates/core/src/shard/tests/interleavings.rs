//! Every order of a few steps of two members.

use super::*;

/// What happens in one step.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The request of a member is carried out and answered.
    Serve(usize),
    /// It is carried out, and the answer comes later.
    Carry(usize),
    /// It is carried out or not, and there is no answer.
    Lose(usize),
    /// What has moved away from a member is stopped.
    Stop(usize),
    /// A moment passes in which members act again.
    Rest,
    /// So much time passes that a lease runs out. Members look at the clock in the order of their numbers.
    Wait,
}

const STEPS: [Step; 10] = [
    Step::Serve(0),
    Step::Serve(1),
    Step::Carry(0),
    Step::Carry(1),
    Step::Lose(0),
    Step::Lose(1),
    Step::Stop(0),
    Step::Stop(1),
    Step::Rest,
    Step::Wait,
];

#[derive(Clone)]
struct World {
    now: Time,
    server: Server,
    nodes: Vec<Node>,
    /// Answers on their way, by member.
    answers: [Option<(u64, Answer)>; 2],
}

impl World {
    fn carry(&mut self, index: usize) {
        if let Some((attempt, _, request)) = self.nodes[index].request()
            && self.answers[index]
                .as_ref()
                .is_none_or(|(answered, _)| *answered != attempt)
        {
            self.answers[index] = Some((attempt, self.server.answer(&request)));
        }
    }

    fn tell(&mut self, index: usize, input: Input) {
        let node = &mut self.nodes[index];
        let outputs = node.tell(self.now, input, 0.0);
        if outputs
            .iter()
            .any(|output| matches!(output, Output::Lost(_)))
        {
            node.tell(self.now, Input::Idle, 0.0);
        }
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        for index in 0..2 {
            self.tell(index, Input::Awake);
        }
    }

    fn play(&mut self, step: Step) {
        match step {
            Step::Serve(index) => {
                self.carry(index);
                if let Some((attempt, answer)) = self.answers[index].take() {
                    self.tell(index, Input::Answered { attempt, answer });
                }
            }
            Step::Carry(index) => self.carry(index),
            Step::Lose(index) => {
                self.answers[index] = None;
                if let Some((attempt, _, _)) = self.nodes[index].request() {
                    let answer = Answer::Failed;
                    self.tell(index, Input::Answered { attempt, answer });
                }
            }
            Step::Stop(index) => self.nodes[index].stop_moved(self.now),
            Step::Rest => self.pass(Duration::from_secs(2)),
            Step::Wait => self.pass(Duration::from_secs(15)),
        }
        let counts = runners(self.nodes.iter().map(|node| node.running(self.now)));
        assert!(counts.iter().all(|count| *count <= 1), "{counts:?}");
    }

    fn explore(&self, depth: u32, played: &mut u64) {
        for step in STEPS {
            let mut next = self.clone();
            next.play(step);
            *played += 1;
            if depth > 1 {
                next.explore(depth - 1, played);
            } else {
                next.comes_to_rest();
            }
        }
    }

    /// When all is answered, each slot is run by one.
    fn comes_to_rest(mut self) {
        for _ in 0..16 {
            for index in 0..2 {
                for _ in 0..6 {
                    self.play(Step::Serve(index));
                    self.play(Step::Stop(index));
                }
            }
            self.play(Step::Rest);
        }
        for index in 0..2 {
            for _ in 0..6 {
                self.play(Step::Serve(index));
            }
        }
        let counts = runners(self.nodes.iter().map(|node| node.running(self.now)));
        assert!(counts.iter().all(|count| *count == 1), "{counts:?}");
    }
}

#[test]
fn no_order_of_three_steps_lets_two_run_a_slot() {
    let world = |from: [u64; 2], settled: &[usize]| {
        let now = secs(20);
        let mut world = World {
            now,
            server: Server::default(),
            nodes: (0..2)
                .map(|index| Node::new(index, secs(from[index])))
                .collect(),
            answers: [None, None],
        };
        for second in 0..=20 {
            for index in settled {
                settle(&mut world.nodes[*index], &mut world.server, secs(second));
            }
        }
        world
    };
    let mut played = 0;
    // Both are new; one is new; both run.
    for world in [
        world([20, 20], &[]),
        world([0, 20], &[0]),
        world([0, 0], &[0, 1]),
    ] {
        world.explore(3, &mut played);
    }
    assert_eq!(played, 3 * 1_110);
}
