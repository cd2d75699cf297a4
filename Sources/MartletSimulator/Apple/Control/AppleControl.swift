internal import MartletCore
private import MartletCrypto
private import MartletJOSE
internal import MartletJSON
internal import MartletResponder

/// The endpoints of the simulated Apple that are not Apple's, for tests:
///
/// - `POST /simulator/token`: a login, see ``TokenRequest``
/// - `POST /simulator/key` and `GET /simulator/private-key`: developers' keys
/// - `POST /simulator/client`: the redirect URIs of a client
/// - `POST /simulator/user`: the state of a user
/// - `POST /simulator/trouble`: errors to inject, see ``AppleFault``
/// - `POST /simulator/limits`: how often refresh tokens may be verified
/// - `POST /simulator/transfer`: an app moves to another team
/// - `GET /simulator/requests`: what has arrived
/// - `POST /simulator/notification`: sends a notification, see ``NotificationRequest``
struct AppleControl {
    private static let paths = [
        "/simulator/token", "/simulator/key", "/simulator/private-key", "/simulator/user", "/simulator/trouble",
        "/simulator/limits", "/simulator/requests", "/simulator/notification",
        "/simulator/transfer", "/simulator/client",
    ]
    private static let maximumFaults: Int64 = 1000

    let simulator: AppleSimulator
    /// Sends notifications; `nil`: none can be sent.
    let http: (any HTTPCalling)?

    func handle(_ request: LocalRequest) async -> LocalResponse {
        switch request.path {
        case "/simulator/notification": await notify(request)
        case "/simulator/token": handling(request, makeToken)
        case "/simulator/key": handling(request, changeKey)
        case "/simulator/private-key": handling(request, readPrivateKey)
        case "/simulator/client": handling(request, registerClient)
        case "/simulator/user": handling(request, changeUser)
        case "/simulator/trouble": handling(request, injectError)
        case "/simulator/transfer": handling(request, acceptTransfer)
        case "/simulator/limits": handling(request, changeLimits)
        case "/simulator/requests": handling(request, listRequests)
        default:
            .problem(
                .notFound, request,
                "no such path; there are \((AppleSimulatorEndpoints.paths + Self.paths).joined(separator: ", "))")
        }
    }

    private static func checkReading(_ request: LocalRequest) throws(RequestError) {
        guard request.method == "GET" || request.method == "HEAD" else {
            throw RequestError("method not allowed: use GET or HEAD", .methodNotAllowed, allow: "GET, HEAD")
        }
    }

    // MARK: Logins

    private func makeToken(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let tokenRequest = try TokenRequest(request, keys: simulator.keys + [simulator.ellipticKey])
        let login = try tokenRequest.make(with: simulator)
        var object: JSONObject = [
            "identity_token": .string(login.token), "kid": .string(tokenRequest.key.id.text),
            "expires_in": .integer(tokenRequest.lifetime),
        ]
        object["authorization_code"] = login.code.map { .string($0) }
        return .json(200, object)
    }

    // MARK: Developers

    /// Registers the public key of a `pem`, or generates a pair and returns its private key; `removed` ends it.
    private func changeKey(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["team_id", "key_id", "client_ids", "pem", "removed"])
        let keyID = try input.requiredText("key_id")
        if try input.flag("removed") ?? false {
            return .json(
                200,
                ["key_id": .string(keyID), "removed": .bool(simulator.records.withBooks { $0.keys.remove(keyID) })])
        }
        let teamID = try input.requiredText("team_id")
        for id in [teamID, keyID] where !DeveloperKey.isIdentifier(id) {
            throw RequestError("'team_id' and 'key_id' are ten characters of A-Z 0-9")
        }
        let clientIDs = try input.texts("client_ids") ?? []
        var response: JSONObject = ["team_id": .string(teamID), "key_id": .string(keyID)]
        if let pem = try input.text("pem") {
            guard let publicKey = try? PublicKey(pem: Secret(pem)),
                let key = DeveloperKey(teamID: teamID, keyID: keyID, clientIDs: clientIDs, publicKey: publicKey)
            else { throw RequestError("'pem' is not a P-256 key") }
            guard simulator.register(key) else { throw RequestError("too many keys are registered") }
        } else {
            guard let pair = try? simulator.makeDeveloperKey(teamID: teamID, keyID: keyID, clientIDs: clientIDs),
                let pem = try? pair.pem()
            else { throw RequestError("the key cannot be generated", .unavailable) }
            response["private_key"] = .string(pem.withBytes { String(decoding: $0, as: UTF8.self) })
        }
        return .json(200, response)
    }

    /// The private key that the simulator generated at its start.
    private func readPrivateKey(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        try Self.checkReading(request)
        guard let developer = simulator.developer else {
            throw RequestError("no key was generated: others were given", .notFound)
        }
        guard let pem = try? developer.pem() else { throw RequestError("the key cannot be written", .unavailable) }
        return .text(200, "application/x-pem-file", pem.withBytes { String(decoding: $0, as: UTF8.self) })
    }

    /// Registers the redirect URIs of a client; an empty list allows every valid one again.
    private func registerClient(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["client_id", "redirect_uris"])
        let clientID = try input.requiredText("client_id")
        guard let redirectURIs = try input.texts("redirect_uris") else {
            throw RequestError("'redirect_uris' is missing")
        }
        guard redirectURIs.allSatisfy(RedirectURI.isValid) else {
            throw RequestError("'redirect_uris' are https, with a domain name and without a fragment")
        }
        guard simulator.records.withBooks({ $0.redirectURIs.register(redirectURIs, of: clientID) }) else {
            throw RequestError("too many clients or redirect URIs")
        }
        return .json(
            200,
            ["client_id": .string(clientID), "redirect_uris": .array(redirectURIs.map { .string($0) })])
    }

    // MARK: Users

    private func changeUser(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["subject", "state", "email_forwarding"])
        let subject = try input.requiredText("subject")
        let forwardsEmail = try input.flag("email_forwarding")
        if let name = try input.text("state") {
            guard let state = AppleUser.State(rawValue: name) else {
                let names = AppleUser.State.allCases.map(\.rawValue).joined(separator: ", ")
                throw RequestError("'state' is not one of \(names)")
            }
            simulator.records.withBooks { $0.users.set(subject, to: state) }
        }
        let user = simulator.records.withBooks { books in
            if let forwardsEmail { books.users.change(subject) { $0.forwardsEmail = forwardsEmail } }
            return books.users[subject]
        }
        return .json(
            200,
            [
                "subject": .string(subject), "state": .string(user.state.rawValue),
                "email_forwarding": .bool(user.forwardsEmail),
            ])
    }

    /// Accepts a transfer between teams, now or at another time; names a user's subjects on request.
    private func acceptTransfer(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["from_team", "to_team", "accepted_at", "subject"])
        let (fromTeam, toTeam) = (try input.requiredText("from_team"), try input.requiredText("to_team"))
        guard DeveloperKey.isIdentifier(fromTeam), DeveloperKey.isIdentifier(toTeam), fromTeam != toTeam else {
            throw RequestError("'from_team' and 'to_team' are two ids of ten characters of A-Z 0-9")
        }
        let now = simulator.clock.unixTime
        let time = try input.number("accepted_at", in: 0...Int64(Int32.max) * 4, unit: " of seconds")
        let transfer = TeamTransfer(
            fromTeam: fromTeam, toTeam: toTeam, acceptedAt: time.map { UnixTime(seconds: $0) } ?? now)
        let subject = try input.text("subject")
        guard simulator.transfers.withLock({ $0.accept(transfer) }) else { throw RequestError("too many transfers") }
        var response: JSONObject = [
            "from_team": .string(fromTeam), "to_team": .string(toTeam), "open": .bool(transfer.isOpen(at: now)),
        ]
        guard let subject else { return .json(200, response) }
        let usesRelay = simulator.records.withBooks { $0.users[subject].usesRelay }
        let user = simulator.transfers.withLock {
            $0.export(subject, from: fromTeam, to: toTeam, usesRelay: usesRelay, at: now)
        }
        response["transfer_sub"] = user.map { .string($0.transferSubject) } ?? .null
        response["sub"] = user.map { .string($0.newSubject) } ?? .null
        return .json(200, response)
    }

    /// Sends a notification and returns what the receiver responded.
    private func notify(_ request: LocalRequest) async -> LocalResponse {
        guard let http else {
            return .problem(.unavailable, request, "this simulator cannot send notifications")
        }
        let notification: NotificationRequest
        do throws(RequestError) { notification = try NotificationRequest(request, simulator: simulator) } catch {
            return error.response(to: request)
        }
        if let (subject, type) = notification.applied { simulator.records.apply(type, to: subject) }
        return .json(200, await NotificationSender(http: http).send(notification))
    }

    // MARK: Errors and limits

    private func injectError(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["path", "times", "grant_type"] + AppleFault.members)
        let path = try input.requiredText("path")
        guard AppleSimulatorEndpoints.paths.contains(path) else {
            throw RequestError("'path' is not one of \(AppleSimulatorEndpoints.paths.joined(separator: ", "))")
        }
        let times = try input.number("times", in: 0...Self.maximumFaults) ?? 1
        let grantType = try input.text("grant_type")
        if times == 0 {
            simulator.errors.withLock { $0.clear(path) }
        } else {
            guard let fault = try AppleFault(input) else {
                throw RequestError("one of delay, error, status, body and close is required")
            }
            let injected = simulator.errors.withLock {
                $0.inject(fault, path: path, grantType: grantType, times: Int(times))
            }
            guard injected else { throw RequestError("too many errors are waiting") }
        }
        return .json(200, ["ordered": .integer(times)])
    }

    private func changeLimits(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        let input = try SimulatorRequest(request, members: ["refreshes_per_day"])
        guard let value = input.object["refreshes_per_day"] else {
            throw RequestError("'refreshes_per_day' is missing")
        }
        let limit = value == .null ? nil : try input.number("refreshes_per_day", in: 0...Self.maximumFaults)
        simulator.records.withBooks { $0.refreshTokens.dailyLimit = limit.map { Int($0) } }
        return .json(200, ["refreshes_per_day": limit.map { .integer($0) } ?? .null])
    }

    /// The entries after the `number` in `?after=`.
    private func listRequests(_ request: LocalRequest) throws(RequestError) -> LocalResponse {
        try Self.checkReading(request)
        guard let query = try? AppleForm(encoded: Array(request.query.utf8)), (try? query.allow(["after"])) != nil,
            let after = Int64(query["after"] ?? "0")
        else { throw RequestError("the query is not ?after=NUMBER") }
        let (entries, last) = simulator.log.withLock { ($0.objects(after: after), $0.last) }
        return .json(200, ["last": .integer(last), "requests": .array(entries)])
    }
}
