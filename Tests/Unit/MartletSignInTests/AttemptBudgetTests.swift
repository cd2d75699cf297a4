import MartletCore
import MartletProvider
import MartletTesting
import Testing

@testable import MartletSignIn

@Suite struct AttemptBudgetTests {
    private static let start = MonotonicTime(nanoseconds: 1_000_000_000)

    private static func four(_ bytes: UInt8...) -> ClientNetwork? {
        ClientNetwork(address: [UInt8](repeating: 0, count: 10) + [0xFF, 0xFF] + bytes)
    }

    /// An address of the subnet `2001:db8:site:subnet::/64`.
    private static func six(_ site: UInt16, _ subnet: UInt16) -> ClientNetwork? {
        let bytes = [
            0x20, 0x01, 0x0D, 0xB8, UInt8(site >> 8), UInt8(site & 0xFF), UInt8(subnet >> 8), UInt8(subnet & 0xFF),
        ]
        return ClientNetwork(address: bytes + [UInt8](repeating: 1, count: 8))
    }

    private static func budget(_ attempts: Int = 10) -> AttemptBudget {
        AttemptBudget(.logins, FailureLimit(attempts: attempts, window: .seconds(100)))
    }

    /// How many attempts fail until one is rejected.
    private static func failures(
        of budget: AttemptBudget, from network: ClientNetwork?, at now: MonotonicTime = start, most: Int = 10_000
    ) -> Int {
        for count in 0..<most {
            guard let attempt = try? budget.begin(from: network, at: now) else { return count }
            budget.end(attempt, failed: true, at: now)
        }
        return most
    }

    private static func wait(_ budget: AttemptBudget, _ network: ClientNetwork?, at now: MonotonicTime) -> Duration? {
        do throws(BudgetExceededError) {
            budget.end(try budget.begin(from: network, at: now), failed: false, at: now)
            return nil
        } catch {
            return error.retryAfter
        }
    }

    @Test func `allows a burst of failures, and then more as time passes`() {
        let (budget, home) = (Self.budget(), Self.four(192, 0, 2, 1))
        #expect(Self.failures(of: budget, from: home) == 10)
        #expect(Self.wait(budget, home, at: Self.start) == .seconds(10))
        #expect(Self.wait(budget, home, at: Self.start + .seconds(9)) == .seconds(1))
        #expect(Self.failures(of: budget, from: home, at: Self.start + .seconds(10)) == 1)
        #expect(Self.failures(of: budget, from: home, at: Self.start + .seconds(50)) == 4)
        #expect(Self.failures(of: budget, from: home, at: Self.start + .seconds(1000)) == 10)
    }

    @Test func `does not charge successes`() throws {
        let (budget, home) = (Self.budget(), Self.four(192, 0, 2, 1))
        for _ in 0..<100_000 {
            budget.end(try budget.begin(from: home, at: Self.start), failed: false, at: Self.start)
        }
        #expect(Self.failures(of: budget, from: home) == 10)
    }

    @Test func `counts attempts in flight as failed`() throws {
        let (budget, home) = (Self.budget(), Self.four(192, 0, 2, 1))
        let attempts = try (0..<10).map { _ in try budget.begin(from: home, at: Self.start) }
        #expect(Self.wait(budget, home, at: Self.start) == .seconds(1))
        #expect(Self.wait(budget, Self.four(198, 51, 100, 1), at: Self.start) == nil)
        for attempt in attempts { budget.end(attempt, failed: false, at: Self.start) }
        #expect(Self.failures(of: budget, from: home) == 10)
    }

    @Test func `gives a block four times what one address has`() {
        let budget = Self.budget()
        let failures = (1...6).map { Self.failures(of: budget, from: Self.four(192, 0, 2, $0)) }
        #expect(failures == [10, 10, 10, 10, 0, 0])
        #expect(Self.failures(of: budget, from: Self.four(192, 0, 3, 1)) == 10)
        // A rejection by the block is not charged to the address: when the block has drained, its full limit is left.
        #expect(Self.failures(of: budget, from: Self.four(192, 0, 2, 6), at: Self.start + .seconds(100)) == 10)
    }

    @Test func `gives a /56 four times and a /48 sixteen times what a /64 has`() {
        let budget = Self.budget()
        #expect((0..<6).map { Self.failures(of: budget, from: Self.six(1, $0)) } == [10, 10, 10, 10, 0, 0])
        let others = (1..<6).map { Self.failures(of: budget, from: Self.six(1, $0 << 8), most: 10) }
        #expect(others == [10, 10, 10, 10, 10])
        let all = (1..<60).map { Self.failures(of: budget, from: Self.six(1, 0x100 | $0 << 9)) }
        #expect(all.reduce(0, +) == 160 - 40 - 50)
        #expect(Self.failures(of: budget, from: Self.six(2, 0)) == 10)
        #expect(Self.failures(of: budget, from: Self.four(192, 0, 2, 1)) == 10)
    }

    @Test func `counts all unknown addresses as one network with a higher limit`() {
        let budget = Self.budget()
        #expect(Self.failures(of: budget, from: nil) == 160)
        #expect(Self.failures(of: budget, from: Self.four(192, 0, 2, 1)) == 10)
    }

    @Test func `keeps counting failures, however many others fail`() {
        let (budget, offender) = (Self.budget(), Self.four(192, 0, 2, 1))
        #expect(Self.failures(of: budget, from: offender) == 10)
        for site in 0..<3000 { _ = Self.failures(of: budget, from: Self.six(UInt16(site), 0)) }
        for block in 0..<3000 {
            _ = Self.failures(of: budget, from: Self.four(10, UInt8(block >> 8), UInt8(block & 0xFF), 1), most: 2)
        }
        #expect(Self.wait(budget, offender, at: Self.start) != nil)
        let honest = (0..<200).count { Self.wait(budget, Self.four(172, 16, UInt8($0), 9), at: Self.start) == nil }
        #expect(honest > 190)
    }

    @Test func `handles extreme limits`() {
        let wide = AttemptBudget(.logins, FailureLimit(attempts: .max, window: .seconds(1)))
        #expect(Self.failures(of: wide, from: nil, most: 100) == 100)
        let none = AttemptBudget(.logins, FailureLimit(attempts: 0, window: .zero))
        #expect(Self.failures(of: none, from: Self.four(192, 0, 2, 1)) == 1)
    }

    @Test func `limits concurrent attempts`() async {
        let (budget, home) = (Self.budget(100), Self.four(192, 0, 2, 1))
        let admitted = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<1000 {
                group.addTask {
                    guard let attempt = try? budget.begin(from: home, at: Self.start) else { return false }
                    await Task.yield()
                    budget.end(attempt, failed: true, at: Self.start)
                    return true
                }
            }
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(admitted == 100)
    }
}
