import Foundation
import MartletTesting
import Testing

/// A gateway that is killed between any two steps, and starts again: no event is lost, no code is sent twice, and nothing
/// stays half done.
@Suite(.timeLimit(.minutes(5))) struct `Killed between any two steps` {
    /// More than any operation has; a sweep ends where one is completed.
    private static let maximumSteps = 120

    /// A gateway, and the simulated Apple, the receiver of webhooks and the Redis server that outlive it.
    private final class Site {
        let stage: AppleLifeStage
        let points: KillPoints
        private(set) var gateway: Gateway
        /// The calls before which it was killed.
        private(set) var kills = ""

        init() throws {
            stage = try AppleLifeStage(hasRedis: true)
            points = try KillPoints(in: stage.folder)
            gateway = try Gateway(stage.configuration(), environment: points.environment, in: stage.folder)
        }

        /// Runs an operation, and kills the gateway before one of its steps.
        /// - Parameters:
        ///   - number: which step, from 1.
        ///   - isComplete: whether all that follows from the operation has been done.
        /// - Returns: whether the gateway was killed.
        func kill(
            atStep number: Int, of operation: (Gateway) throws -> Void, until isComplete: () throws -> Bool
        ) throws -> Bool {
            try points.arm(number)
            try? operation(gateway)
            try waitUntil("the operation is completed, or the gateway killed", within: .seconds(30)) {
                if gateway.process.poll() != nil { return true }
                return try isComplete()
            }
            let calls = try points.disarm()
            // The kill may have been on its way.
            if calls.count >= number { _ = try gateway.process.wait() }
            guard let ending = gateway.process.poll() else { return false }
            guard ending == .signalled(SIGKILL) else { throw TestFailure("\(ending): \(gateway.everything)") }
            kills += String(calls.prefix(number).suffix(1))
            try restart()
            return true
        }

        /// Starts again, as on another machine some time later: the leases of the killed process have expired.
        private func restart() throws {
            _ = try query("UPDATE leases SET expires_at = 0")
            gateway = try Gateway(stage.configuration(), environment: points.environment, in: stage.folder)
        }

        /// What the account store says.
        func query(_ text: String) throws -> String {
            let result = try run(
                try Executable.named("sqlite3"), ["-cmd", ".timeout 5000", stage.folder.file("accounts.db"), text])
            guard result.ending == .exited(0) else { throw TestFailure("\(result)") }
            return result.output
        }

        func identifiers(_ type: String, of subject: String) -> [String] {
            stage.events.filter { $0.type == type && $0.subject == subject }.map(\.id)
        }

        func requests(to path: String) throws -> Int {
            try stage.requests().count { $0["path"] as? String == path }
        }
    }

    /// Repeats a request that gets 503: a gateway that has just started may still be fetching Apple's keys.
    private static func served(_ request: () throws -> HTTPMessage) throws -> HTTPMessage {
        var response = try request()
        try waitUntil("the gateway serves", within: .seconds(30)) {
            if response.status == 503 { response = try request() }
            return response.status != 503
        }
        return response
    }

    private static func subject(_ response: HTTPMessage) throws -> String {
        guard response.status == 200, let subject = response.member("subject") else {
            throw TestFailure("no login: \(response)")
        }
        return subject
    }

    /// Kills at every step, until one run completes the operation.
    private func sweep(_ site: Site, _ body: (Int) throws -> Bool) throws {
        var number = 1
        while try body(number) {
            number += 1
            guard number < Self.maximumSteps else { throw TestFailure("no run completes the operation") }
        }
        #expect(number > 3, "an operation has steps")
        print("killed before \(site.kills.count) steps (f: commit, s, w: sent): \(site.kills)")
    }

    @Test func `a login sends its code at most once, and its account is reported once`() throws {
        let site = try Site()
        var people: [String] = []
        try sweep(site) { number in
            let credential = try site.stage.credential(number)
            let before = try site.requests(to: "/auth/token")
            var isAnswered = false
            let isKilled = try site.kill(atStep: number) { gateway in
                isAnswered = try AppleLifeStage.post("/auth/login/apple", credential, at: gateway).status == 200
            } until: {
                isAnswered && site.stage.events.count { $0.type == "account.created" } > people.count
            }
            let again = try Self.served {
                try AppleLifeStage.post("/auth/login/apple", credential, at: site.gateway)
            }
            #expect([200, 401].contains(again.status), "step \(number): \(again)")
            #expect(try site.requests(to: "/auth/token") <= before + 1, "step \(number)")
            people.append(try Self.subject(try Self.served { try site.stage.login(number, at: site.gateway) }))
            return isKilled
        }
        for (index, person) in people.enumerated() {
            try waitUntil("account \(index) is reported", within: .seconds(30)) {
                !site.identifiers("account.created", of: person).isEmpty
            }
            #expect(site.identifiers("account.created", of: person).count == 1, "step \(index + 1)")
        }
        #expect(Set(people).count == people.count)
        try site.gateway.stop()
    }

    @Test func `a notification ends the sessions, with each event once`() throws {
        let site = try Site()
        var people: [String] = []
        try sweep(site) { number in
            let login = try Self.served { try site.stage.login(number, at: site.gateway) }
            let (person, token) = (try Self.subject(login), login.member("access_token") ?? "")
            let payload = try site.stage.notification("consent-revoked", of: number)
            let isKilled = try site.kill(atStep: number) { gateway in
                _ = try site.stage.notify(payload, at: gateway)
            } until: {
                !site.identifiers("session.revoked", of: person).isEmpty
            }
            // Apple sends it again, because it got no response.
            let again = try site.stage.notify(payload, at: site.gateway)
            #expect(["applied", "repeated"].contains(again.member("outcome")), "step \(number): \(again)")
            try waitUntil("the session of step \(number) ends") {
                try AppleLifeStage.status(token, at: site.gateway) == 401
            }
            people.append(person)
            return isKilled
        }
        for (index, person) in people.enumerated() {
            for type in ["account.created", "identity.revoked", "session.revoked"] {
                try waitUntil("\(type) of step \(index + 1) is reported", within: .seconds(30)) {
                    !site.identifiers(type, of: person).isEmpty
                }
                #expect(site.identifiers(type, of: person).count == 1, "\(type) of step \(index + 1)")
            }
        }
        try site.gateway.stop()
    }

    @Test func `a deletion is completed, revoked at Apple, and reported once`() throws {
        let site = try Site()
        var people: [String] = []
        try sweep(site) { number in
            let login = try Self.served { try site.stage.login(number, at: site.gateway) }
            let (person, token) = (try Self.subject(login), login.member("access_token") ?? "")
            let isKilled = try site.kill(atStep: number) { gateway in
                _ = try AppleLifeStage.delete(token, at: gateway)
            } until: {
                !site.identifiers("account.deleted", of: person).isEmpty
            }
            // The app tries again; its session may have ended, and the account too while the request is handled.
            let again = try Self.served { try AppleLifeStage.delete(token, at: site.gateway) }
            #expect([202, 401, 404].contains(again.status), "step \(number): \(again)")
            try waitUntil("the session of step \(number) ends") {
                try AppleLifeStage.status(token, at: site.gateway) == 401
            }
            people.append(person)
            return isKilled
        }
        for (index, person) in people.enumerated() {
            try waitUntil("the deletion of step \(index + 1) is reported", within: .seconds(60)) {
                !site.identifiers("account.deleted", of: person).isEmpty
            }
            let types = site.stage.events.filter { $0.subject == person }.map(\.type)
            #expect(types == ["account.created", "session.revoked", "account.deleted"], "step \(index + 1)")
        }
        let deleted = site.stage.events.filter { $0.type == "account.deleted" }
        #expect(deleted.allSatisfy { $0.data["revoked_at_apple"] as? Bool == true })
        #expect(try site.requests(to: "/auth/revoke") >= people.count)
        try site.gateway.stop()
        #expect(try site.query("SELECT kind, error FROM jobs").isEmpty, "nothing is left to do")
    }
}
