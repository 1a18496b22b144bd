# SPDX-License-Identifier: Apache-2.0
# bash completion for lensing

_lensing() {
    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} command=${COMP_WORDS[1]}
    local shared='--max-keypoints --keypoint-threshold --nms-radius --weights --threads --exif --max-pixels
        --precision --backend --device-id --quiet --output --draw --descriptors --no-descriptors --help'
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ]; then
        mapfile -t COMPREPLY < <(compgen -W 'detect match fetch info bench serve blackhole-selftest help --help
            --version' -- "$cur")
        return
    fi
    case $prev in
        -f | --format) mapfile -t COMPREPLY < <(compgen -W 'json npz hdf5' -- "$cur") && return ;;
        --exif) mapfile -t COMPREPLY < <(compgen -W 'ignore apply' -- "$cur") && return ;;
        --precision) mapfile -t COMPREPLY < <(compgen -W 'fp32 bf16' -- "$cur") && return ;;
        --backend) mapfile -t COMPREPLY < <(compgen -W 'cpu blackhole' -- "$cur") && return ;;
        -n | --max-keypoints | --keypoint-threshold | --nms-radius | --max-pixels | -t | --threads | --ratio | \
            --min-similarity | -r | --runs | --host | -p | --port | --max-body | --max-body-memory | --max-connections | \
            --queue | --queue-timeout | --header-timeout | --body-timeout | --write-timeout | --min-rate | \
            --idle-timeout | --drain-timeout | --device-id) return ;;
    esac
    if [ "$command" = help ]; then
        mapfile -t COMPREPLY < <(compgen -W 'detect match fetch info bench serve blackhole-selftest' -- "$cur")
    elif [[ $cur == -* ]]; then
        local options='--help'
        case $command in
            detect) options="$shared --format" ;;
            match) options="$shared --ratio --min-similarity" ;;
            fetch) options='--quiet --help' ;;
            info) options='--json --weights --help' ;;
            bench) options='--json --layers --runs --image --weights --threads --precision --backend --device-id --quiet
                --help' ;;
            blackhole-selftest) options='--device-id --reset --weights --json --help' ;;
            serve) options='--host --port --weights --threads --precision --backend --device-id --api-key-file
                --max-body --max-body-memory --max-pixels --max-connections --queue --queue-timeout --header-timeout --body-timeout --write-timeout
                --min-rate --idle-timeout --drain-timeout --help' ;;
        esac
        mapfile -t COMPREPLY < <(compgen -W "$options" -- "$cur")
    else
        mapfile -t COMPREPLY < <(compgen -f -- "$cur")
        compopt -o filenames 2>/dev/null
    fi
}

complete -F _lensing lensing
