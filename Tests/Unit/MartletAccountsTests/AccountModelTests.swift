import MartletAccounts
import MartletCore
import MartletJSON
import MartletTesting
import Testing

// Part of two targets, like AccountRuleTests.

/// A simple in-memory model of the account rules.
private struct AccountModel {
    struct Bound {
        var account: Int
        let provider: String
        var main: String
        var subjects: Set<String>
    }

    var identities: [Bound] = []
    var accounts = 0

    func holder(_ person: AccountIdentity) -> Int? {
        for subject in person.subjects {
            let found = identities.firstIndex { $0.provider == person.provider && $0.subjects.contains(subject) }
            if let found { return found }
        }
        return nil
    }

    mutating func signIn(_ person: AccountIdentity) -> (account: Int, isNew: Bool) {
        if let index = holder(person) {
            complete(index, person)
            return (identities[index].account, false)
        }
        accounts += 1
        add(person, to: accounts - 1)
        return (accounts - 1, true)
    }

    mutating func link(_ person: AccountIdentity, to account: Int) -> ErrorCode? {
        if let index = holder(person) {
            guard identities[index].account == account else { return .accountsBoundElsewhere }
            complete(index, person)
            return nil
        }
        let isTaken = identities.contains { $0.account == account && $0.provider == person.provider }
        guard !isTaken else { return .accountsProviderTaken }
        add(person, to: account)
        return nil
    }

    mutating func unlink(_ provider: String, from account: Int) -> (gone: AccountIdentity?, ErrorCode?) {
        let index = identities.firstIndex { $0.account == account && $0.provider == provider }
        guard let index else { return (nil, .accountsNotLinked) }
        guard identities.count(where: { $0.account == account }) > 1 else { return (nil, .accountsLastIdentity) }
        return (shown(identities.remove(at: index)), nil)
    }

    func shown(of account: Int) -> [AccountIdentity] {
        identities.filter { $0.account == account }.map(shown).sorted { $0.provider < $1.provider }
    }

    private func shown(_ bound: Bound) -> AccountIdentity {
        let others = bound.subjects.subtracting([bound.main]).sorted()
        return AccountIdentity(provider: bound.provider, subjects: [bound.main] + others)
    }

    private mutating func add(_ person: AccountIdentity, to account: Int) {
        let subjects = Set(person.subjects)
        identities.append(
            Bound(account: account, provider: person.provider, main: person.subjects[0], subjects: subjects))
    }

    private mutating func complete(_ index: Int, _ person: AccountIdentity) {
        let first = person.subjects[0]
        let isBound = identities.contains { $0.provider == person.provider && $0.subjects.contains(first) }
        if !isBound || person.subjects.contains(identities[index].main) {
            identities[index].main = first
        }
        for subject in person.subjects {
            let isTaken = identities.contains { $0.provider == person.provider && $0.subjects.contains(subject) }
            if !isTaken { identities[index].subjects.insert(subject) }
        }
    }
}

@Suite(.timeLimit(.minutes(3))) struct AccountModelTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func `matches the model for random sequences of calls`(seed: UInt64) async throws {
        try await withStores(2) { stores in
            var generator = SeededGenerator(seed: seed)
            var model = AccountModel()
            var subjects: [String] = []
            for round in 0..<250 {
                let store = stores[round % 2]
                let person = randomIdentity(&generator)
                let account = Int.random(in: 0..<max(model.accounts, 1), using: &generator)
                switch Int.random(in: 0..<10, using: &generator) {
                case 0..<4:
                    let expected = model.signIn(person)
                    let found = try await store.signIn(person)
                    if expected.isNew { subjects.append(found.subject) }
                    #expect(found.isNew == expected.isNew && found.subject == subjects[expected.account])
                case 4..<7 where !subjects.isEmpty:
                    let expected = model.link(person, to: account)
                    let failure = await code {
                        try await store.link(person, to: subjects[account], keeping: [:], at: noon)
                    }
                    #expect(failure == expected)
                case 7..<9 where !subjects.isEmpty:
                    let expected = model.unlink(person.provider, from: account)
                    let gone = Box<AccountIdentity?>(nil)
                    let failure = await code {
                        let identity = try await store.unlink(provider: person.provider, from: subjects[account])
                        gone.withLock { $0 = identity }
                    }
                    #expect(failure == expected.1 && gone.value == expected.gone)
                default:
                    let expected = model.holder(person).map { subjects[model.identities[$0].account] }
                    #expect(try await store.known(person)?.subject == expected)
                }
            }
            #expect(subjects.count > 3 && Set(subjects).count == subjects.count)
            for (index, subject) in subjects.enumerated() {
                let listed = try await stores[0].identities(of: subject).sorted { $0.provider < $1.provider }
                #expect(listed == model.shown(of: index))
            }
        }
    }

    private func randomIdentity(_ generator: inout SeededGenerator) -> AccountIdentity {
        let provider = ["apple", "wechat", "password"].randomElement(using: &generator) ?? ""
        let names = (0..<12).map { "s\($0)" }.shuffled(using: &generator)
        return AccountIdentity(
            provider: provider, subjects: Array(names.prefix(Int.random(in: 1...3, using: &generator))))
    }
}
