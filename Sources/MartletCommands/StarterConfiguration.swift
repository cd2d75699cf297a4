/// The configuration that `martlet init` writes: it runs unchanged and shows the most important settings.
enum StarterConfiguration {
    static let text = """
        # yaml-language-server: $schema=martlet.schema.json
        #
        # This configuration runs unchanged, without any other service:
        #
        #   martlet user add ada                          adds a password user; prompts for the password
        #   martlet run                                   serves
        #   curl -i http://127.0.0.1:8080/public/hello    200: a public route
        #   curl -i http://127.0.0.1:8080/v1/orders       401: no credential
        #   curl -i -d username=ada -d password=…  http://127.0.0.1:8080/auth/login/password
        #                                                 200: an access token for "Authorization: Bearer …"
        #
        #   martlet check --strict                        all errors and warnings, as file:line:column
        #   martlet schema > martlet.schema.json          the schema in the first line, for editors
        #
        # Durations are written 250ms, 10s, 15m, 1h, 30d; sizes 512B, 16KiB, 10MiB. ${VAR} and ${VAR:-default} are read from
        # the environment. A secret `x` can be given as `x_file`. Paths are relative to this file.

        version: 1

        server:
          listen:
            - address: 127.0.0.1:8080
              # tls: { certificate_file: cert.pem, key_file: key.pem }

        # Health, metrics and a dashboard, without authentication: do not expose it to a network.
        admin: { address: 127.0.0.1:9901, socket: "unix:martlet.sock" }

        log: { level: info }

        # The session store. Several instances share a Redis: redis://127.0.0.1:6379/0
        store: { url: "memory:" }

        # The account store. Several instances share a PostgreSQL: url_file with postgresql://…
        accounts: { url: "sqlite:martlet.db" }

        # The providers that authenticate callers.
        providers:
          password: { kind: password, users: accounts }
          # apple: { kind: apple, audiences: [com.example.app] }        # your bundle ids
          # wechat:
          #   kind: wechat
          #   apps:
          #     ios: { variant: mobile, app_id: wx0000000000000001, app_secret_file: wechat-ios.secret }

        # The upstreams. builtin:echo responds with the request that it received; use [http://127.0.0.1:9000] for yours.
        upstreams:
          api: { endpoints: ["builtin:echo"] }

        # The routes to the upstreams, with their requirements. The first route that matches wins.
        routes:
          - name: public
            match: { path: /public/** }
            auth: none
            upstream: api

          - name: api
            match: { path: /v1/** }
            auth:
              providers: [password]
              credentials: [session]      # a token of /auth/login/…; direct accepts the providers' own credentials
            # authorize:                  # all conditions must hold, else 403
            #   - { claim: email_verified, equals: true }
            headers:
              set:                        # clients cannot send these headers themselves
                X-User-Id: { attribute: subject }
                X-User-Provider: { attribute: provider }
            upstream: api

        """
}
