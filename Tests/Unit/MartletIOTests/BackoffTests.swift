import MartletIO
import Testing

@Suite struct BackoffTests {
    @Test func `delays between attempts double with jitter and stay under two seconds`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var backoff = Backoff()
            var ceiling = 50
            for _ in 0..<70 {
                let pause = backoff.next(using: &generator)
                #expect(pause >= .milliseconds(ceiling / 2) && pause <= .milliseconds(ceiling))
                ceiling = min(ceiling * 2, 1800)
            }
            #expect(backoff.failures == 70)
            backoff.reset()
            #expect(backoff.next(using: &generator) <= .milliseconds(50))
        }
    }
}
