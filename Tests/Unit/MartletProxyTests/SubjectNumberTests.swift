import MartletProxy
import Testing

@Suite struct SubjectNumberTests {
    @Test func `is the same for one subject, and another for another`() {
        #expect(SubjectNumber.of("usr_a") == SubjectNumber.of("usr_a"))
        let numbers = Set((0..<1000).map { SubjectNumber.of("usr_\($0)") })
        #expect(numbers.count == 1000 && !numbers.contains(0))
    }
}
