import MartletTesting
import Testing

@testable import MartletCore

@Suite struct FairGateTests {
    private static let flood = WorkOwner(group: 1, member: 1)
    private static let other = WorkOwner(group: 2, member: 1)

    @Test func `lets so much in at once, and all of it in the end`() async {
        let gate = FairGate(places: 3, queue: 1000)
        let (now, most) = (Box(0), Box(0))
        let entered = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    guard await gate.enter(as: WorkOwner(group: UInt64(number % 4), member: 0)) else { return false }
                    now.withLock { $0 += 1 }
                    most.withLock { $0 = max($0, now.value) }
                    await Task.yield()
                    now.withLock { $0 -= 1 }
                    gate.leave()
                    return true
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(entered == 200 && most.value <= 3 && now.value == 0)
    }

    @Test func `lets another owner in next, and refuses what is more than a share`() async {
        let gate = FairGate(places: 1, queue: 8)
        #expect(await gate.enter(as: Self.flood))
        let order = Box<[String]>([])
        let refused = Box(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    guard await gate.enter(as: Self.flood) else { return refused.withLock { $0 += 1 } }
                    order.withLock { $0.append("flood") }
                    gate.leave()
                }
            }
            while refused.value < 4 { await Task.yield() }
            let isAsked = Box(false)
            group.addTask {
                isAsked.withLock { $0 = true }
                guard await gate.enter(as: Self.other) else { return order.withLock { $0.append("refused") } }
                order.withLock { $0.append("other") }
                gate.leave()
            }
            while !isAsked.value { await Task.yield() }
            // Until it waits; if that takes longer it is let in later, which is what must not be.
            try? await Task.sleep(for: .milliseconds(100))
            gate.leave()
        }
        #expect(refused.value == 4)
        #expect(order.value.count == 3 && order.value.prefix(2).contains("other"))
    }
}
