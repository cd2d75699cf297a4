import Testing

@testable import MartletCore

@Suite struct `Bounds that clients share` {
    @Test(arguments: SharedBound.allCases)
    func `leave something to others, or say why they need not`(bound: SharedBound) {
        let terms = bound.terms
        #expect((terms.total ?? 1) > 0 && (terms.bytes ?? 1) > 0)
        switch terms.share {
        case .part(let address, let network): #expect(address >= network && network >= 1)
        case .partAndFree(let part): #expect(part > 1)
        case .free(let times): #expect(times >= 1)
        case .rate(let count, let window): #expect(count > 0 && window > .zero)
        case .reserve(let part): #expect(part > 1)
        case .own, .whole: #expect(terms.excess != .tooManyRequests)
        }
    }

    @Test func `have names of their own`() {
        #expect(Set(SharedBound.allCases.map(\.rawValue)).count == SharedBound.allCases.count)
        #expect(SharedBound.allCases.count > 60)
    }

    @Test func `give an address and its network the parts that they say`() {
        #expect(SharedBound.passwordHashes.addressPart(of: 256) == 64)
        #expect(SharedBound.passwordHashes.networkPart(of: 256) == 128)
        #expect(SharedBound.passwordHashes.addressPart(of: 1) == 1)
        #expect(SharedBound.usedProofs.addressPart(of: 100_000) == 12_500)
        #expect(SharedBound.usedProofs.networkPart(of: 100_000) == 100_000)
        #expect(SharedBound.logLines.clientPart(of: 4096) == 3072)
        #expect(SharedBound.spans.clientPart(of: 10) == 10 && SharedBound.spans.addressPart(of: 10) == 10)
        #expect(SharedBound.mailsToAddress.rate?.count == 3 && SharedBound.spans.rate == nil)
    }
}
