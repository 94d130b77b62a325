//! The results, lines and arguments that the request shows as they came.

use context_model::hash::Digest;
use context_model::id::ObjectId;
use context_model::time::TxId;

use super::segment::{Form, Output, Segment, SegmentKind, ShownLines};
use super::segments::Segments;
use super::size::size;
use crate::Objects;

impl Segments {
    /// Notes the lines that a read shows; earlier reads whose lines it covers are superseded.
    pub(super) fn hold(&mut self, place: usize, lines: &ShownLines, objects: &dyn Objects) {
        let covers = |earlier: &ShownLines| lines.first <= earlier.first && earlier.last <= lines.last;
        let covered: Vec<usize> = self
            .reads_of(&lines.file)
            .filter(|(place, earlier)| covers(earlier) && !self.segments[*place].superseded)
            .map(|(place, _)| place)
            .collect();
        self.reads.entry(lines.file.clone()).or_default().push(place);
        covered.iter().for_each(|earlier| self.segments[*earlier].superseded = true);
        self.judge_all(covered, objects);
    }

    /// Returns the named result in which an object's text is in the request in full: not rolled, not as an excerpt, and not cut
    /// by its tool. A file's text must be that of the version with this hash.
    pub fn whole_in(&self, object: &ObjectId, version: Option<Digest>, text: &str) -> Option<&ObjectId> {
        let named = |places| self.full_at(places).filter(|output: &&Output| output.named);
        let is_uncut = |output: &&Output| output.excerpt.is_none() && output.full_tokens >= size(text);
        let is_whole = |output: &&Output| {
            output.carries.as_ref().is_some_and(|carried| carried.whole && carried.version == version)
        };
        let own = named(self.places.get(object)).find(is_uncut);
        own.or_else(|| named(self.carriers.get(object)).find(is_whole)).map(|output| &output.object)
    }

    /// True if a call's result is in the request as it came.
    pub fn shows(&self, call: &ObjectId) -> bool {
        self.pictured.contains(call) || self.full_at(self.places.get(call)).next().is_some()
    }

    /// The calls whose results are at these places.
    pub fn calls_at(&self, places: impl Iterator<Item = usize>) -> impl Iterator<Item = &ObjectId> {
        places.filter_map(|place| self.output_at(place)).map(|output| &output.object)
    }

    /// The results at these places that are in the request as they came.
    fn full_at<'p>(&'p self, places: Option<&'p Vec<usize>>) -> impl Iterator<Item = &'p Output> {
        let born = places.into_iter().flatten().filter(|place| self.segments[**place].form == Form::Full);
        born.filter_map(|place| self.output_at(*place)).filter(|output| !output.masked)
    }

    /// True if the arguments of an object's call are not shown in full.
    pub fn hides_arguments(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|place| {
            let Segment { kind, form, .. } = &self.segments[*place];
            *form != Form::Full && matches!(kind, SegmentKind::Arguments(_))
        })
    }

    /// The tool call whose visible result shows these lines of this version of a file, under a name that the model sees.
    pub fn showing(&self, lines: &ShownLines) -> Option<&ObjectId> {
        self.visible_reads(&lines.file)
            .filter(|(_, read)| {
                read.hash == lines.hash && read.first <= lines.first && lines.last <= read.last
            })
            .filter(|(place, _)| !self.segments[*place].superseded)
            .filter_map(|(place, _)| self.output_at(place))
            .find(|output| output.named)
            .map(|output| &output.object)
    }

    /// The versions of a file that have visible lines, one for each result: the hash, and a transaction as of which
    /// the file has that version.
    pub fn held(&self, file: &ObjectId) -> impl Iterator<Item = (Digest, TxId)> {
        self.visible_reads(file).map(|(_, read)| (read.hash, read.tx))
    }

    /// The lines that a tool call's result showed when it came.
    pub fn lines_of(&self, object: &ObjectId) -> Option<&ShownLines> {
        self.places.get(object)?.iter().find_map(|place| self.output_at(*place)?.shown.as_ref())
    }

    /// True if an object's output has a place in the request, in any form.
    pub fn knows(&self, object: &ObjectId) -> bool {
        self.places.get(object).into_iter().flatten().any(|place| self.output_at(*place).is_some())
    }

    /// The number of results of an object in the request: several if the very same call was made again.
    pub fn times(&self, object: &ObjectId) -> usize {
        self.results_of(object).len()
    }

    /// The places of an object's results, in their order.
    pub(super) fn results_of(&self, object: &ObjectId) -> Vec<usize> {
        let places = self.places.get(object).into_iter().flatten().copied();
        places.filter(|place| self.output_at(*place).is_some()).collect()
    }

    /// The places of the arguments of an object's calls, in their order.
    pub(super) fn arguments_of(&self, object: &ObjectId) -> Vec<usize> {
        let places = self.places.get(object).into_iter().flatten().copied();
        let mut found: Vec<usize> =
            places.filter(|place| matches!(self.segments[*place].kind, SegmentKind::Arguments(_))).collect();
        found.dedup();
        found
    }

    fn visible_reads(&self, file: &ObjectId) -> impl Iterator<Item = (usize, &ShownLines)> {
        self.reads_of(file).filter(|(place, _)| self.segments[*place].form == Form::Full)
    }

    /// Returns the reads of a file that are in the request, or were until they were rolled: their places, and the lines that
    /// they showed.
    fn reads_of(&self, file: &ObjectId) -> impl Iterator<Item = (usize, &ShownLines)> {
        let places = self.reads.get(file).into_iter().flatten();
        places.filter_map(|place| Some((*place, self.output_at(*place)?.shown.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::objects::TestObjects;
    use crate::request::segment::Carried;

    fn id(name: &str) -> ObjectId {
        ObjectId::new(name)
    }

    /// Lines of version `a` of a file.
    fn lines(first: usize, last: usize) -> ShownLines {
        ShownLines { file: id("file"), hash: Digest::of(b"a"), tx: TxId(1), first, last }
    }

    fn shown(output: Output, form: Form) -> Segments {
        let mut segments = Segments::default();
        segments.push_result("m", output, &TestObjects::default());
        if form != Form::Full {
            segments.take_form(0, form);
        }
        segments
    }

    fn carrying(whole: bool, version: Option<Digest>) -> Output {
        Output { carries: Some(Carried { object: id("x"), whole, version }), ..Output::of_test("other", 900) }
    }

    /// The place of the whole text of `x`, which has 400 chars and no versions.
    #[rstest]
    #[case::in_its_own_result(Output::of_test("x", 100), Form::Full, Some("x"))]
    #[case::that_its_tool_has_cut(Output::of_test("x", 99), Form::Full, None)]
    #[case::that_has_left(Output::of_test("x", 100), Form::Reference, None)]
    #[case::that_nobody_can_name(Output { named: false, ..Output::of_test("x", 100) }, Form::Full, None)]
    #[case::that_its_host_has_masked(Output { masked: true, ..Output::of_test("x", 100) }, Form::Full, None)]
    #[case::as_an_excerpt(Output { excerpt: Some(String::new()), ..Output::of_test("x", 100) }, Form::Full, None)]
    #[case::in_another_result(carrying(true, None), Form::Full, Some("other"))]
    #[case::of_which_it_has_a_part(carrying(false, None), Form::Full, None)]
    #[case::that_has_another_version(carrying(true, Some(Digest::of(b"b"))), Form::Full, None)]
    fn where_a_text_is_whole(#[case] output: Output, #[case] form: Form, #[case] found: Option<&str>) {
        let segments = shown(output, form);
        let text = "word ".repeat(80);
        assert_eq!(segments.whole_in(&id("x"), None, &text), found.map(id).as_ref());
    }

    /// A result that shows the lines 3 to 6 of version `a`.
    #[rstest]
    #[case::the_same(lines(3, 6), true)]
    #[case::a_part(lines(4, 5), true)]
    #[case::one_line_more_before(lines(2, 6), false)]
    #[case::one_line_more_behind(lines(3, 7), false)]
    #[case::other_bytes(ShownLines { hash: Digest::of(b"b"), ..lines(3, 6) }, false)]
    #[case::another_file(ShownLines { file: id("other"), ..lines(3, 6) }, false)]
    fn whether_lines_are_in_sight(#[case] asked: ShownLines, #[case] is_shown: bool) {
        let output = Output { shown: Some(lines(3, 6)), ..Output::of_test("read", 900) };
        let segments = shown(output.clone(), Form::Full);
        assert_eq!(segments.showing(&asked).is_some(), is_shown);
        assert_eq!(segments.held(&id("file")).collect::<Vec<_>>(), [(Digest::of(b"a"), TxId(1))]);
        // But not once they have left, under no name, or if a later read shows them.
        let mut covered = shown(output.clone(), Form::Full);
        covered.segments[0].superseded = true;
        let unnamed = Output { named: false, ..output.clone() };
        for segments in [shown(output, Form::Reference), shown(unnamed, Form::Full), covered] {
            assert_eq!(segments.showing(&asked), None);
        }
        let rolled =
            shown(Output { shown: Some(lines(3, 6)), ..Output::of_test("read", 900) }, Form::Reference);
        assert_eq!(rolled.held(&id("file")).count(), 0);
    }
}
