import MartletCore
import Testing

@Suite struct `Counted calls` {
    @Test func `bounds rise, and the last bucket has what is longer`() {
        #expect(latencyBounds == latencyBounds.sorted() && Set(latencyBounds).count == latencyBounds.count)
        #expect(CallCounts.bucket(of: .microseconds(100)) == 0)
        #expect(CallCounts.bucket(of: .microseconds(101)) == 1)
        #expect(CallCounts.bucket(of: .seconds(3600)) == latencyBounds.count)
        #expect(CallCounts.bucket(of: .seconds(-1)) == 0)
    }

    @Test func `calls are counted with their failures and durations`() {
        var counts = CallCounts()
        counts.count(.milliseconds(3), failed: false)
        counts.count(.seconds(60), failed: true)
        counts.count(nil, failed: true)
        #expect(counts.calls == 3 && counts.failures == 2)
        #expect(counts.sumMicroseconds == 60_003_000)
        #expect(counts.buckets.reduce(0, +) == 2 && counts.buckets[5] == 1 && counts.buckets.last == 1)
    }

    @Test func `threads count together`() async {
        let recorder = CallRecorder()
        await withTaskGroup(of: Void.self) { group in
            for index in 0..<8 {
                group.addTask { for _ in 0..<1000 { recorder.count(.milliseconds(1), failed: index == 0) } }
            }
        }
        #expect(recorder.counts.calls == 8000 && recorder.counts.failures == 1000)
        #expect(recorder.counts.buckets[3] == 8000 && recorder.counts.sumMicroseconds == 8_000_000)
    }
}
