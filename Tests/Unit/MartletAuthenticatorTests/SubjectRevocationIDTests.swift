import MartletAuthenticator
import Testing

@Suite struct SubjectRevocationIDTests {
    @Test func `is the same for one subject, and another for another`() {
        #expect(SubjectRevocationID.of("usr_a") == SubjectRevocationID.of("usr_a"))
        let numbers = Set((0..<1000).map { SubjectRevocationID.of("usr_\($0)") })
        #expect(numbers.count == 1000 && !numbers.contains(0))
    }
}
