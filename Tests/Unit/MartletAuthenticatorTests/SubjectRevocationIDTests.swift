import MartletAuthenticator
import Testing

@Suite struct SubjectRevocationIDTests {
    @Test func `is the same for one subject, and another for another`() {
        #expect(SubjectRevocationID.of("usr_a") == SubjectRevocationID.of("usr_a"))
        let numbers = Set((0..<1000).map { SubjectRevocationID.of("usr_\($0)") })
        #expect(numbers.count == 1000 && !numbers.contains(0))
    }

    /// More subjects than are kept, in an order in which some are asked for again; two are equivalent for Unicode.
    @Test func `is the same when it is asked for again`() {
        var numbers = SubjectNumbers()
        let subjects = (0..<300).map { "partner:\($0 % 170)" } + ["k:K", "k:\u{212A}", "k:K", ""]
        for subject in subjects + subjects.reversed() {
            #expect(numbers.number(of: subject) == SubjectRevocationID.of(subject))
        }
    }
}
