import MartletResponder
import Testing

@testable import MartletAdmin

@Suite struct `Table of metrics` {
    private static let counts = MetricFamily.all.compactMap { family in family.count.map { (family.name, $0) } }

    @Test func `every count of the loops has a row, and is added up by it alone`() {
        for (name, count) in Self.counts {
            let loops = [(1, ["a": 1, "b": 2]), (10, ["b": 3, "c": 4])].map { number, byLabel in
                var loop = LoopReport()
                switch count {
                case .number(let path): loop[keyPath: path] = number
                case .byLabel(let path): loop[keyPath: path] = byLabel
                }
                return loop
            }
            let sum = Traffic(loops).counts
            for (otherName, other) in Self.counts {
                switch other {
                case .number(let path): #expect(sum[keyPath: path] == (name == otherName ? 11 : 0), "\(name)")
                case .byLabel(let path):
                    #expect(sum[keyPath: path] == (name == otherName ? ["a": 1, "b": 5, "c": 4] : [:]), "\(name)")
                }
            }
        }
        #expect(Self.leaves(of: LoopReport()) == Self.counts.count)
    }

    /// How many counters a report has besides those that have labels of their own.
    private static func leaves(of value: Any) -> Int {
        Mirror(reflecting: value).children.reduce(0) { sum, child in
            // The loop's number is no count; requests, reasons and credentials are added up in other ways.
            if ["loop", "reasons", "providers"].contains(child.label) { return sum }
            if child.value is Int || child.value is [String: Int] { return sum + 1 }
            return Mirror(reflecting: child.value).displayStyle == .struct ? sum + leaves(of: child.value) : sum
        }
    }

    @Test func `each name is there once, with a sentence`() {
        let names = MetricFamily.all.map(\.name)
        #expect(Set(names).count == names.count)
        for family in MetricFamily.all {
            #expect(family.name.hasPrefix("martlet_") && family.help.hasSuffix("."), "\(family.name)")
            #expect((family.kind == .counter) == family.name.hasSuffix("_total"), "\(family.name)")
        }
    }
}
