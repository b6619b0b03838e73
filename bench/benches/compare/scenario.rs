//! What is measured.

/// How many controllers there are where there are several.
pub(crate) const CONTROLLERS: usize = 10;

/// What happens to a controller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) kind: Kind,
    /// How many objects there are.
    pub(crate) objects: usize,
    /// How many runs go on at once.
    pub(crate) concurrency: u16,
    /// How many controllers look at the same objects.
    pub(crate) controllers: usize,
    pub(crate) course: Course,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Of 1.2 KB.
    ConfigMap,
    /// Of 7 KB.
    Pod,
}

/// What happens once every object was reconciled. Only the start is measured from the beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Course {
    Start,
    /// So many events, as fast as they are read.
    Storm(usize),
    /// The watch expires, and everything is listed again. Then one object changes.
    Relist,
    /// So many events, 100 in a second.
    Latency(usize),
    /// Every object is to be reconciled once more.
    Drain,
}

const fn scenario(name: &'static str, kind: Kind, objects: usize, course: Course) -> Scenario {
    Scenario {
        name,
        kind,
        objects,
        concurrency: 16,
        controllers: 1,
        course,
    }
}

const fn drain(name: &'static str, objects: usize, concurrency: u16) -> Scenario {
    Scenario {
        concurrency,
        ..scenario(name, Kind::ConfigMap, objects, Course::Drain)
    }
}

pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario(
        "start-10k-configmaps",
        Kind::ConfigMap,
        10_000,
        Course::Start,
    ),
    scenario(
        "start-100k-configmaps",
        Kind::ConfigMap,
        100_000,
        Course::Start,
    ),
    scenario("start-20k-pods", Kind::Pod, 20_000, Course::Start),
    scenario(
        "storm-configmaps",
        Kind::ConfigMap,
        10_000,
        Course::Storm(200_000),
    ),
    scenario("storm-pods", Kind::Pod, 10_000, Course::Storm(200_000)),
    scenario(
        "relist-100k-configmaps",
        Kind::ConfigMap,
        100_000,
        Course::Relist,
    ),
    scenario("latency", Kind::ConfigMap, 1_000, Course::Latency(1_000)),
    drain("drain-20k-at-1", 20_000, 1),
    drain("drain-200k-at-1", 200_000, 1),
    drain("drain-20k-at-16", 20_000, 16),
    drain("drain-200k-at-16", 200_000, 16),
    Scenario {
        controllers: 10,
        ..scenario("ten-controllers", Kind::ConfigMap, 20_000, Course::Start)
    },
];

impl Scenario {
    pub(crate) fn named(name: &str) -> Option<Self> {
        SCENARIOS
            .iter()
            .find(|scenario| scenario.name == name)
            .copied()
    }

    /// Which object an event of its course is about, and the version that it has from then on.
    pub(crate) fn event(&self, number: usize) -> (usize, u64) {
        (
            number % self.objects,
            first_version(self.objects) + number as u64,
        )
    }

    /// How many events there are.
    pub(crate) fn events(&self) -> usize {
        match self.course {
            Course::Start | Course::Drain => 0,
            Course::Relist => 1,
            Course::Storm(events) | Course::Latency(events) => events,
        }
    }

    /// The versions that the objects have in the end.
    pub(crate) fn last_versions(&self) -> Vec<u64> {
        let mut versions: Vec<u64> = (0..self.objects).map(listed_version).collect();
        for number in 0..self.events() {
            let (object, version) = self.event(number);
            versions[object] = version;
        }
        versions
    }
}

/// The version in which an object is listed.
pub(crate) fn listed_version(object: usize) -> u64 {
    1000 + object as u64
}

/// The version of the first event.
fn first_version(objects: usize) -> u64 {
    1_000_000 + listed_version(objects)
}
