import MartletTesting
import Testing

@testable import MartletCore

@Suite struct FairSemaphoreTests {
    private static let flood = WorkOwner(group: 1, member: 1)
    private static let other = WorkOwner(group: 2, member: 1)

    @Test func `limits concurrent holders and serves all waiters eventually`() async {
        let semaphore = FairSemaphore(permits: 3, queue: 1000)
        let (now, most) = (Box(0), Box(0))
        let acquired = await withTaskGroup(of: Bool.self) { group in
            for number in 0..<200 {
                group.addTask {
                    let owner = WorkOwner(group: UInt64(number % 4), member: 0)
                    guard await semaphore.acquire(as: owner) else { return false }
                    now.withLock { $0 += 1 }
                    most.withLock { $0 = max($0, now.value) }
                    await Task.yield()
                    now.withLock { $0 -= 1 }
                    semaphore.release()
                    return true
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(acquired == 200 && most.value <= 3 && now.value == 0)
    }

    @Test func `serves another owner next, and rejects waiters beyond an owner's share`() async {
        let semaphore = FairSemaphore(permits: 1, queue: 8)
        #expect(await semaphore.acquire(as: Self.flood))
        let order = Box<[String]>([])
        let rejected = Box(0)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask {
                    guard await semaphore.acquire(as: Self.flood) else { return rejected.withLock { $0 += 1 } }
                    order.withLock { $0.append("flood") }
                    semaphore.release()
                }
            }
            while rejected.value < 4 { await Task.yield() }
            group.addTask {
                guard await semaphore.acquire(as: Self.other) else { return order.withLock { $0.append("rejected") } }
                order.withLock { $0.append("other") }
                semaphore.release()
            }
            while semaphore.waiting < 3 { await Task.yield() }
            semaphore.release()
        }
        #expect(rejected.value == 4)
        #expect(order.value.count == 3 && order.value.prefix(2).contains("other"))
    }
}
